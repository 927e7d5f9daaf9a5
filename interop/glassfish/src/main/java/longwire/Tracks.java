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
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;

/**
 * The tracks service as a web application: the files under {@code longwire.files} in three forms.
 *
 * <p>An answer is written as applications write theirs: into the response's stream, piece by piece,
 * with no length said beforehand. What becomes of that on the wire is the server's choice, and what
 * this peer is for.
 */
public final class Tracks extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final int FILE_COUNT = 22;
    private static final String SERVICE = "urn:longwire:tracks:1";
    private static final String FAULT =
            "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Body>"
                    + "<soap:Fault><faultcode>soap:Client</faultcode><faultstring>send GetTrack "
                    + "with a number from 1 to 22</faultstring></soap:Fault></soap:Body>"
                    + "</soap:Envelope>";

    private transient Path files;
    private transient XMLInputFactory factory;

    @Override
    public void init() {
        files = Path.of(System.getProperty("longwire.files"));
        factory = XMLInputFactory.newDefaultFactory();
        // What comes from outside names no files of ours and does not multiply.
        factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
        factory.setProperty(XMLInputFactory.IS_COALESCING, true);
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

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response)
            throws ServletException, IOException {
        OptionalInt number = OptionalInt.empty();
        if (request.getServletPath().equals("/soap")) {
            number = asked(request.getInputStream());
        }
        if (number.isPresent()) {
            answer(response, "text/xml; charset=utf-8", files.resolve("soap"), number.getAsInt());
        } else {
            response.setStatus(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
            response.setContentType("text/xml; charset=utf-8");
            response.getWriter().write(FAULT);
        }
    }

    private static void answer(HttpServletResponse response, String type, Path form, int number)
            throws IOException {
        response.setContentType(type);
        try (InputStream file = Files.newInputStream(form.resolve(String.valueOf(number)))) {
            file.transferTo(response.getOutputStream());
        }
    }

    /** The number that a SOAP 1.1 message with the operation GetTrack asks for. */
    private OptionalInt asked(InputStream message) {
        try {
            XMLStreamReader reader = factory.createXMLStreamReader(message);
            boolean operation = false;
            while (reader.hasNext()) {
                if (reader.next() != XMLStreamReader.START_ELEMENT
                        || !SERVICE.equals(reader.getNamespaceURI())) {
                    continue;
                }
                if (operation && reader.getLocalName().equals("number")) {
                    return number(reader.getElementText().trim());
                }
                operation = reader.getLocalName().equals("GetTrack");
            }
        } catch (XMLStreamException notAsked) {
            // The caller answers with a fault, as for any other message without a number.
        }
        return OptionalInt.empty();
    }

    private static OptionalInt number(String text) {
        try {
            int number = Integer.parseInt(text);
            boolean exists = number >= 1 && number <= FILE_COUNT;
            return exists ? OptionalInt.of(number) : OptionalInt.empty();
        } catch (NumberFormatException noNumber) {
            return OptionalInt.empty();
        }
    }
}
