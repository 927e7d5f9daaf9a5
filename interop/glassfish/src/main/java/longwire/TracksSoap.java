package longwire;

import jakarta.xml.ws.Provider;
import jakarta.xml.ws.Service;
import jakarta.xml.ws.ServiceMode;
import jakarta.xml.ws.WebServiceException;
import jakarta.xml.ws.WebServiceProvider;
import java.nio.file.Path;
import java.util.OptionalInt;
import javax.xml.transform.Source;
import javax.xml.transform.TransformerException;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMResult;
import javax.xml.transform.stream.StreamSource;
import org.w3c.dom.Document;
import org.w3c.dom.NodeList;

/**
 * The operation GetTrack as a JAX-WS endpoint: the server's own SOAP stack reads the request and
 * writes the answer, of which the file is the content.
 */
@WebServiceProvider(
        serviceName = "Tracks",
        portName = "TracksPort",
        targetNamespace = TracksSoap.SERVICE)
@ServiceMode(Service.Mode.MESSAGE)
public final class TracksSoap implements Provider<Source> {
    static final String SERVICE = "urn:longwire:tracks:1";

    private final Path files = Path.of(System.getProperty("longwire.files"), "soap");
    private final TransformerFactory factory = TransformerFactory.newInstance();

    @Override
    public Source invoke(Source message) {
        OptionalInt number = Tracks.number(asked(message));
        if (number.isEmpty()) {
            throw new WebServiceException("give GetTrack a number from 1 to 22");
        }
        return new StreamSource(files.resolve(String.valueOf(number.getAsInt())).toFile());
    }

    private String asked(Source message) {
        DOMResult result = new DOMResult();
        try {
            factory.newTransformer().transform(message, result);
        } catch (TransformerException malformed) {
            throw new WebServiceException(malformed);
        }
        NodeList numbers = ((Document) result.getNode()).getElementsByTagNameNS(SERVICE, "number");
        return numbers.getLength() == 1 ? numbers.item(0).getTextContent().trim() : "";
    }
}
