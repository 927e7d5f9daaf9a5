package longwire;

import com.siemens.ct.exi.core.context.GrammarContext;
import com.siemens.ct.exi.core.context.GrammarUriContext;
import com.siemens.ct.exi.core.context.QNameContext;
import com.siemens.ct.exi.core.datatype.Datatype;
import com.siemens.ct.exi.core.datatype.DatetimeDatatype;
import com.siemens.ct.exi.core.datatype.EnumerationDatatype;
import com.siemens.ct.exi.core.datatype.ListDatatype;
import com.siemens.ct.exi.core.datatype.NBitUnsignedIntegerDatatype;
import com.siemens.ct.exi.core.datatype.RestrictedCharacterSetDatatype;
import com.siemens.ct.exi.core.datatype.StringDatatype;
import com.siemens.ct.exi.core.datatype.charset.RestrictedCharacterSet;
import com.siemens.ct.exi.core.grammars.event.Attribute;
import com.siemens.ct.exi.core.grammars.event.AttributeNS;
import com.siemens.ct.exi.core.grammars.event.Characters;
import com.siemens.ct.exi.core.grammars.event.Event;
import com.siemens.ct.exi.core.grammars.event.StartElement;
import com.siemens.ct.exi.core.grammars.event.StartElementNS;
import com.siemens.ct.exi.core.grammars.grammar.Grammar;
import com.siemens.ct.exi.core.grammars.grammar.SchemaInformedFirstStartTagGrammar;
import com.siemens.ct.exi.core.grammars.grammar.SchemaInformedStartTagGrammar;
import com.siemens.ct.exi.core.grammars.production.Production;
import com.siemens.ct.exi.grammars.GrammarFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;

/**
 * The grammars that EXIficient makes of schemas, as text.
 *
 * <p>Standard input names a schema on each line. The answer is lines of fields with tabs between them,
 * the first a letter: "S" the schema; "X" the schema and why it was refused; "U" a namespace and its
 * initial local names; "T", "E" a type or global element and its grammar; "A" a global attribute and
 * its datatype; "D", "F" the grammar of documents or fragments behind SD; "G" a grammar: its number,
 * kind (F first, S other start tags, C content, D document or fragment), whether typable, whether
 * nillable, type-empty grammar, content grammar, and its productions by event code, each
 * "event|next|grammar of the element"; "Z" the end.
 */
public final class Grammars {
    /** Longest that a schema may take, since some occurrences keep the library busy for hours. */
    private static final long MAX_MILLIS = 20_000;

    private final Map<Grammar, Integer> numbers = new IdentityHashMap<>();
    private final ArrayDeque<Grammar> open = new ArrayDeque<>();
    /** Type-empty grammars make type-empty grammars of their own, without end. */
    private final Set<Integer> empties = new HashSet<>();

    private final StringBuilder out = new StringBuilder();

    private Grammars() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        // Whatever the libraries print is no answer.
        System.setOut(System.err);
        BufferedReader schemas =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String schema; (schema = schemas.readLine()) != null; ) {
            answers.print(answer(schema));
            answers.println("Z");
            answers.flush();
        }
        // A thread that was left behind does not end by itself.
        Runtime.getRuntime().halt(0);
    }

    private static String answer(String schema) throws InterruptedException {
        String[] answer = {"X\t" + schema + "\tover " + MAX_MILLIS + " ms\n"};
        Thread worker = new Thread(() -> {
            String made;
            try {
                Grammars grammars = new Grammars();
                grammars.dump(schema);
                made = grammars.out.toString();
            } catch (Exception | StackOverflowError | OutOfMemoryError e) {
                made = "X\t" + schema + "\t" + String.valueOf(e).replaceAll("\\s+", " ") + "\n";
            }
            synchronized (answer) {
                answer[0] = made;
            }
        });
        worker.setDaemon(true);
        worker.start();
        worker.join(MAX_MILLIS);
        synchronized (answer) {
            return answer[0];
        }
    }

    private void dump(String schema) throws Exception {
        var grammars = GrammarFactory.newInstance().createGrammars(schema);
        line("S", schema);
        GrammarContext context = grammars.getGrammarContext();
        for (int at = 0; at < context.getNumberOfGrammarUriContexts(); at++) {
            names(context.getGrammarUriContext(at));
        }
        line("D", number(grammars.getDocumentGrammar().getProduction(0).getNextGrammar()));
        line("F", number(grammars.getFragmentGrammar().getProduction(0).getNextGrammar()));
        for (Grammar grammar; (grammar = open.poll()) != null; ) {
            grammar(grammar);
        }
    }

    private void names(GrammarUriContext uri) {
        StringBuilder locals = new StringBuilder();
        for (int at = 0; at < uri.getNumberOfQNames(); at++) {
            locals.append(uri.getQNameContext(at).getLocalName()).append(' ');
        }
        line("U", uri.getNamespaceUri(), locals);
        for (int at = 0; at < uri.getNumberOfQNames(); at++) {
            QNameContext name = uri.getQNameContext(at);
            if (name.getTypeGrammar() != null) {
                line("T", name(name), number(name.getTypeGrammar()));
            }
            if (name.getGlobalStartElement() != null) {
                line("E", name(name), number(name.getGlobalStartElement().getGrammar()));
            }
            if (name.getGlobalAttribute() != null) {
                line("A", name(name), datatype(name.getGlobalAttribute().getDatatype()));
            }
        }
    }

    private void grammar(Grammar grammar) {
        int number = number(grammar);
        String kind = "C";
        boolean typable = false;
        boolean nillable = false;
        int empty = -1;
        int content = -1;
        if (grammar instanceof SchemaInformedFirstStartTagGrammar first) {
            kind = "F";
            typable = first.isTypeCastable();
            nillable = first.isNillable();
            content = number(first.getElementContentGrammar());
            if (!empties.contains(number)) {
                empty = number(first.getTypeEmpty());
                empties.add(empty);
            }
        } else if (grammar instanceof SchemaInformedStartTagGrammar) {
            kind = "S";
            content = number(grammar.getElementContentGrammar());
        } else if (grammar.getGrammarType().name().matches(".*(DOC|FRAGMENT).*")) {
            kind = "D";
        }
        StringBuilder productions = new StringBuilder();
        for (int code = 0; code < grammar.getNumberOfEvents(); code++) {
            productions.append('\t').append(production(grammar.getProduction(code)));
        }
        line("G", number, kind, typable, nillable, empty, content + productions.toString());
    }

    private String production(Production production) {
        Event event = production.getEvent();
        int child = -1;
        String shown;
        switch (event.getEventType()) {
            case START_ELEMENT -> {
                StartElement start = (StartElement) event;
                shown = "SE" + name(start.getQNameContext());
                child = number(start.getGrammar());
            }
            case START_ELEMENT_NS -> shown = "SE{" + ((StartElementNS) event).getNamespaceURI() + "}*";
            case START_ELEMENT_GENERIC -> shown = "SE*";
            case ATTRIBUTE -> {
                Attribute attribute = (Attribute) event;
                shown = "AT" + name(attribute.getQNameContext()) + "="
                        + datatype(attribute.getDatatype());
            }
            case ATTRIBUTE_NS -> shown = "AT{" + ((AttributeNS) event).getNamespaceURI() + "}*";
            case ATTRIBUTE_GENERIC -> shown = "AT*";
            case CHARACTERS -> shown = "CH=" + datatype(((Characters) event).getDatatype());
            case CHARACTERS_GENERIC -> shown = "CH*";
            case END_ELEMENT -> {
                return "EE|-1|-1";
            }
            case END_DOCUMENT -> {
                return "ED|-1|-1";
            }
            default -> shown = event.getEventType().name();
        }
        return shown + "|" + number(production.getNextGrammar()) + "|" + child;
    }

    private static String datatype(Datatype datatype) {
        if (datatype instanceof EnumerationDatatype values) {
            StringBuilder shown = new StringBuilder("ENUMERATION(");
            for (int at = 0; at < values.getEnumerationSize(); at++) {
                shown.append(escape(values.getEnumValue(at).toString())).append(',');
            }
            return shown + ";" + datatype(values.getEnumValueDatatype()) + ")";
        }
        if (datatype instanceof ListDatatype list) {
            return "LIST(" + datatype(list.getListDatatype()) + ")";
        }
        if (datatype instanceof NBitUnsignedIntegerDatatype range) {
            return "BOUNDED(" + range.getLowerBound() + "," + range.getNumberOfBits() + ")";
        }
        if (datatype instanceof RestrictedCharacterSetDatatype restricted) {
            RestrictedCharacterSet set = restricted.getRestrictedCharacterSet();
            StringBuilder shown = new StringBuilder("RESTRICTED(");
            for (int at = 0; at < set.size(); at++) {
                shown.append(escape(Character.toString(set.getCodePoint(at))));
            }
            return shown + ")";
        }
        if (datatype instanceof DatetimeDatatype date) {
            return "DATE(" + date.getDatetimeType() + ")";
        }
        return datatype instanceof StringDatatype ? "STRING" : datatype.getBuiltInType().name();
    }

    /** Only letters and digits stay; other characters become their number. */
    private static String escape(String text) {
        StringBuilder shown = new StringBuilder();
        text.codePoints().forEach(point -> {
            if (point < 0x80 && Character.isLetterOrDigit(point)) {
                shown.appendCodePoint(point);
            } else {
                shown.append('%').append(Integer.toHexString(point)).append('.');
            }
        });
        return shown.toString();
    }

    private static String name(QNameContext name) {
        return "{" + name.getNamespaceUri() + "}" + name.getLocalName();
    }

    private int number(Grammar grammar) {
        Integer known = numbers.get(grammar);
        if (known != null) {
            return known;
        }
        int made = numbers.size();
        numbers.put(grammar, made);
        open.add(grammar);
        return made;
    }

    private void line(Object... fields) {
        for (int at = 0; at < fields.length; at++) {
            out.append(at == 0 ? "" : "\t").append(fields[at]);
        }
        out.append('\n');
    }
}
