package longwire;

import com.siemens.ct.exi.core.CodingMode;
import com.siemens.ct.exi.core.EXIFactory;
import com.siemens.ct.exi.core.EncodingOptions;
import com.siemens.ct.exi.core.FidelityOptions;
import com.siemens.ct.exi.core.helpers.DefaultEXIFactory;
import com.siemens.ct.exi.grammars.GrammarFactory;
import com.siemens.ct.exi.main.api.sax.EXIResult;
import com.siemens.ct.exi.main.api.sax.SAXFactory;
import com.siemens.ct.exi.main.util.FragmentUtilities;
import com.siemens.ct.exi.main.util.SkipRootElementXMLReader;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import javax.xml.namespace.QName;
import javax.xml.parsers.SAXParserFactory;
import javax.xml.transform.OutputKeys;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.sax.SAXSource;
import javax.xml.transform.stream.StreamResult;
import org.xml.sax.DTDHandler;
import org.xml.sax.InputSource;
import org.xml.sax.XMLReader;
import org.xml.sax.ext.DefaultHandler2;

/**
 * EXIficient behind a pipe, so that one warm machine answers many requests.
 *
 * <p>A request is a line of fields with tabs between them: the verb, the options with commas between
 * them ("-" for none), the schema ("-" for none, "=" for the built-in types only), the input file, the
 * output file ("-" for none) and for how many milliseconds to repeat (0: once). Verbs: "encode" (XML to
 * EXI), "decode" (EXI to XML), "events" (EXI to events that nobody uses).
 *
 * <p>An answer is a line "ok", the length of the output in bytes, how often it was made and the
 * nanoseconds that this took; or "error" and why.
 */
public final class Exi {
    private static final Map<String, EXIFactory> FACTORIES = new HashMap<>();

    private Exi() {}

    /** One way through the library, with what is kept from round to round. */
    private interface Work {
        void round(byte[] input, ByteArrayOutputStream output) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // Whatever the libraries print is no answer.
        System.setOut(System.err);
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = requests.readLine()) != null; ) {
            String answer;
            try {
                answer = answer(line.split("\t"));
            } catch (Exception | StackOverflowError | OutOfMemoryError e) {
                answer = "error\t" + String.valueOf(e).replaceAll("\\s+", " ");
            }
            answers.println(answer);
            answers.flush();
        }
    }

    private static String answer(String[] fields) throws Exception {
        if (fields.length != 6) {
            throw new IllegalArgumentException("a request has 6 fields, not " + fields.length);
        }
        EXIFactory factory = factory(fields[1], fields[2]);
        byte[] input = Files.readAllBytes(Path.of(fields[3]));
        long enough = Long.parseLong(fields[5]) * 1_000_000;
        Work work = switch (fields[0]) {
            case "encode" -> encoder(factory);
            case "decode" -> decoder(factory);
            case "events" -> events(factory);
            default -> throw new IllegalArgumentException("no such verb: " + fields[0]);
        };
        ByteArrayOutputStream output = new ByteArrayOutputStream(input.length);
        long begin = System.nanoTime();
        long taken;
        int rounds = 0;
        do {
            output.reset();
            work.round(input, output);
            rounds++;
            taken = System.nanoTime() - begin;
        } while (taken < enough);
        if (!fields[4].equals("-")) {
            Files.write(Path.of(fields[4]), output.toByteArray());
        }
        return "ok\t" + output.size() + "\t" + rounds + "\t" + taken;
    }

    private static Work encoder(EXIFactory factory) throws Exception {
        XMLReader reader = reader();
        return (input, output) -> {
            EXIResult result = new EXIResult(factory);
            result.setOutputStream(output);
            reader.setContentHandler(result.getHandler());
            reader.setDTDHandler((DTDHandler) result.getHandler());
            String properties = "http://xml.org/sax/properties/";
            reader.setProperty(properties + "lexical-handler", result.getLexicalHandler());
            reader.setProperty(properties + "declaration-handler", result.getLexicalHandler());
            InputStream stream = new ByteArrayInputStream(input);
            if (factory.isFragment()) {
                stream = FragmentUtilities.getSurroundingRootInputStream(stream);
                new SkipRootElementXMLReader(reader).parse(new InputSource(stream));
            } else {
                reader.parse(new InputSource(stream));
            }
        };
    }

    private static Work decoder(EXIFactory factory) throws Exception {
        Transformer transformer = TransformerFactory.newInstance().newTransformer();
        if (factory.isFragment()) {
            transformer.setOutputProperty(OutputKeys.OMIT_XML_DECLARATION, "yes");
        }
        XMLReader reader = new SAXFactory(factory).createEXIReader();
        return (input, output) -> {
            InputSource source = new InputSource(new ByteArrayInputStream(input));
            transformer.transform(new SAXSource(reader, source), new StreamResult(output));
        };
    }

    private static Work events(EXIFactory factory) throws Exception {
        XMLReader reader = new SAXFactory(factory).createEXIReader();
        DefaultHandler2 nobody = new DefaultHandler2();
        reader.setContentHandler(nobody);
        reader.setProperty("http://xml.org/sax/properties/lexical-handler", nobody);
        return (input, output) -> reader.parse(new InputSource(new ByteArrayInputStream(input)));
    }

    /** Reads as EXIficient's own command line does: namespaces, no validation, no external DTD. */
    private static XMLReader reader() throws Exception {
        SAXParserFactory parsers = SAXParserFactory.newInstance();
        parsers.setNamespaceAware(true);
        parsers.setFeature("http://apache.org/xml/features/nonvalidating/load-external-dtd", false);
        XMLReader reader = parsers.newSAXParser().getXMLReader();
        // What is wrong comes as an exception; nothing is to be printed.
        reader.setErrorHandler(new DefaultHandler2());
        reader.setEntityResolver((publicId, systemId) -> new InputSource(new StringReader("")));
        return reader;
    }

    private static EXIFactory factory(String options, String schema) throws Exception {
        String key = options + "\t" + schema;
        EXIFactory factory = FACTORIES.get(key);
        if (factory == null) {
            factory = DefaultEXIFactory.newInstance();
            FidelityOptions fidelity = ("," + options + ",").contains(",strict,")
                    ? FidelityOptions.createStrict() : FidelityOptions.createDefault();
            factory.setFidelityOptions(fidelity);
            // Hints are attributes as others are.
            factory.getEncodingOptions().setOption(EncodingOptions.INCLUDE_XSI_SCHEMALOCATION);
            if (!options.equals("-")) {
                for (String option : options.split(",")) {
                    set(factory, fidelity, option);
                }
            }
            GrammarFactory grammars = GrammarFactory.newInstance();
            factory.setGrammars(switch (schema) {
                case "-" -> grammars.createSchemaLessGrammars();
                case "=" -> grammars.createXSDTypesOnlyGrammars();
                default -> grammars.createGrammars(schema);
            });
            FACTORIES.put(key, factory);
        }
        return factory;
    }

    private static void set(EXIFactory factory, FidelityOptions fidelity, String option)
            throws Exception {
        String[] parts = option.split("=", 2);
        EncodingOptions header = factory.getEncodingOptions();
        switch (parts[0]) {
            case "strict" -> { }
            case "bit-packed" -> factory.setCodingMode(CodingMode.BIT_PACKED);
            case "byte-packed" -> factory.setCodingMode(CodingMode.BYTE_PACKED);
            case "pre-compression" -> factory.setCodingMode(CodingMode.PRE_COMPRESSION);
            case "compression" -> factory.setCodingMode(CodingMode.COMPRESSION);
            case "comments" -> fidelity.setFidelity(FidelityOptions.FEATURE_COMMENT, true);
            case "pis" -> fidelity.setFidelity(FidelityOptions.FEATURE_PI, true);
            case "dtd" -> fidelity.setFidelity(FidelityOptions.FEATURE_DTD, true);
            case "prefixes" -> fidelity.setFidelity(FidelityOptions.FEATURE_PREFIX, true);
            case "lexical" -> fidelity.setFidelity(FidelityOptions.FEATURE_LEXICAL_VALUE, true);
            case "self-contained" -> fidelity.setFidelity(FidelityOptions.FEATURE_SC, true);
            case "alone" -> {
                QName[] more = {QName.valueOf(parts[1])};
                factory.setSelfContainedElements(more);
            }
            case "canonical" -> header.setOption(EncodingOptions.CANONICAL_EXI);
            case "utc-time" -> header.setOption(EncodingOptions.UTC_TIME);
            case "profile-values" -> header.setOption(EncodingOptions.INCLUDE_PROFILE_VALUES);
            case "string-for" -> factory.setDatatypeRepresentationMap(
                    new QName[] {QName.valueOf(parts[1])},
                    new QName[] {new QName("http://www.w3.org/2009/exi", "string")});
            case "fragment" -> factory.setFragment(true);
            case "cookie" -> header.setOption(EncodingOptions.INCLUDE_COOKIE);
            case "options" -> header.setOption(EncodingOptions.INCLUDE_OPTIONS);
            case "block-size" -> factory.setBlockSize(Integer.parseInt(parts[1]));
            case "value-max-length" -> factory.setValueMaxLength(Integer.parseInt(parts[1]));
            case "value-partition-capacity" ->
                    factory.setValuePartitionCapacity(Integer.parseInt(parts[1]));
            case "no-local-value-partitions" -> factory.setLocalValuePartitions(false);
            case "built-in-grammars-max" ->
                    factory.setMaximumNumberOfBuiltInElementGrammars(Integer.parseInt(parts[1]));
            case "built-in-productions-max" ->
                    factory.setMaximumNumberOfBuiltInProductions(Integer.parseInt(parts[1]));
            default -> throw new IllegalArgumentException("no such option: " + option);
        }
    }
}
