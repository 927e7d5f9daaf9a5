package longwire;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalInt;

/**
 * The REST forms of the tracks as a servlet: the files under {@code longwire.files}.
 *
 * <p>An answer is written as applications write theirs: into the response's stream, piece by piece,
 * with no length said beforehand. What becomes of that on the wire is the server's choice, and what
 * this peer is for.
 */
public final class Tracks extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final int FILE_COUNT = 22;

    private transient Path files;

    @Override
    public void init() {
        files = Path.of(System.getProperty("longwire.files"));
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws ServletException, IOException {
        String path = String.valueOf(request.getPathInfo());
        boolean xml = path.startsWith("/xml/");
        OptionalInt number = number(path.substring(path.lastIndexOf('/') + 1));
        if (number.isEmpty() || !(xml || path.startsWith("/json/"))) {
            response.sendError(HttpServletResponse.SC_NOT_FOUND);
            return;
        }
        String type = xml ? "application/xml; charset=utf-8" : "application/json";
        answer(response, type, files.resolve(xml ? "rest/xml" : "rest/json"), number.getAsInt());
    }

    private static void answer(HttpServletResponse response, String type, Path form, int number)
            throws IOException {
        response.setContentType(type);
        try (InputStream file = Files.newInputStream(form.resolve(String.valueOf(number)))) {
            file.transferTo(response.getOutputStream());
        }
    }

    /** The number of a file that exists. */
    static OptionalInt number(String text) {
        try {
            int number = Integer.parseInt(text);
            boolean exists = number >= 1 && number <= FILE_COUNT;
            return exists ? OptionalInt.of(number) : OptionalInt.empty();
        } catch (NumberFormatException noNumber) {
            return OptionalInt.empty();
        }
    }
}
