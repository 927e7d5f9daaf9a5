import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import javax.xml.namespace.QName;
import org.apache.axiom.om.OMElement;
import org.apache.axis2.AxisFault;
import org.apache.axis2.context.ConfigurationContext;
import org.apache.axis2.context.ConfigurationContextFactory;
import org.apache.axis2.context.MessageContext;
import org.apache.axis2.description.AxisService;
import org.apache.axis2.description.InOnlyAxisOperation;
import org.apache.axis2.receivers.AbstractMessageReceiver;
import org.apache.axis2.transport.http.SimpleHTTPServer;

/**
 * RT-SOA's consumer on Axis2: entities are read from the message, handed over through a queue, and
 * stored in a table by one worker.
 *
 * Consumer PORT REPOSITORY SAMPLES: a file that gets, at the end, a line of T0, T1 and T2 for each
 * entity in nanoseconds of CLOCK_MONOTONIC, which is what System.nanoTime() is on Linux. T1 is when
 * all entities of a message are read and it is handed over, T2 when one of them is stored.
 */
public final class Consumer {
    private static final String NAMESPACE = "urn:longwire:realtime:1";
    private static final int MAX_SAMPLES = 4_000_000;
    private static final int PLACES = 256;
    private static final int MAX_ID = 4096;

    private record Entity(int id, String name, String kind, double latitude, double longitude,
                          double altitude, double course, double speed, long time) {}

    private record Message(long sent, long handed, Entity[] entities) {}

    private static final BlockingQueue<Message> QUEUE = new ArrayBlockingQueue<>(PLACES);
    private static final Entity[] TABLE = new Entity[MAX_ID];
    private static final long[] TIMES = new long[3 * MAX_SAMPLES];
    private static final AtomicInteger COUNT = new AtomicInteger();
    private static final AtomicLong REFUSED = new AtomicLong();

    private static final class Receiver extends AbstractMessageReceiver {
        @Override
        protected void invokeBusinessLogic(MessageContext context) throws AxisFault {
            OMElement process = context.getEnvelope().getBody().getFirstElement();
            process.build();
            long sent = 0;
            Entity[] entities = new Entity[16];
            int count = 0;
            for (Iterator<OMElement> all = process.getChildElements(); all.hasNext();) {
                OMElement element = all.next();
                switch (element.getLocalName()) {
                    case "sentNs" -> sent = Long.parseLong(element.getText());
                    case "entity" -> entities[count++] = entity(element);
                    default -> { }
                }
            }
            Entity[] whole = java.util.Arrays.copyOf(entities, count);
            if (!QUEUE.offer(new Message(sent, System.nanoTime(), whole))) {
                REFUSED.incrementAndGet();
                throw new AxisFault("the queue is full");
            }
        }
    }

    private static Entity entity(OMElement of) {
        Iterator<OMElement> fields = of.getChildElements();
        return new Entity(Integer.parseInt(fields.next().getText()), fields.next().getText(),
            fields.next().getText(), Double.parseDouble(fields.next().getText()),
            Double.parseDouble(fields.next().getText()), Double.parseDouble(fields.next().getText()),
            Double.parseDouble(fields.next().getText()), Double.parseDouble(fields.next().getText()),
            Long.parseLong(fields.next().getText()));
    }

    private static void work() {
        try {
            while (true) {
                Message message = QUEUE.take();
                for (Entity entity : message.entities()) {
                    TABLE[entity.id() % MAX_ID] = entity;
                    int at = COUNT.get();
                    if (at < MAX_SAMPLES) {
                        TIMES[3 * at] = message.sent();
                        TIMES[3 * at + 1] = message.handed();
                        TIMES[3 * at + 2] = System.nanoTime();
                        COUNT.set(at + 1);
                    }
                }
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static void write(Path samples) {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(samples))) {
            int count = COUNT.get();
            for (int at = 0; at < count; at++) {
                out.println(TIMES[3 * at] + " " + TIMES[3 * at + 1] + " " + TIMES[3 * at + 2]);
            }
            out.println("refused " + REFUSED.get());
        } catch (IOException error) {
            System.err.println(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        Path samples = Path.of(arguments[2]);
        ConfigurationContext context = ConfigurationContextFactory
            .createConfigurationContextFromFileSystem(arguments[1], null);
        AxisService service = new AxisService("consumer");
        InOnlyAxisOperation operation = new InOnlyAxisOperation(new QName(NAMESPACE, "Process"));
        operation.setMessageReceiver(new Receiver());
        operation.setSoapAction(NAMESPACE + "#Process");
        service.addOperation(operation);
        service.mapActionToOperation(NAMESPACE + "#Process", operation);
        context.getAxisConfiguration().addService(service);
        Thread worker = new Thread(Consumer::work, "worker");
        worker.setDaemon(true);
        worker.start();
        // Before the server's own: what has come until then is written.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> write(samples)));
        new SimpleHTTPServer(context, port).start();
        System.out.println("ready");
        System.out.flush();
    }
}
