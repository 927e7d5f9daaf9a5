package longwire;

import java.io.StringReader;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.cxf.wsn.client.Consumer;
import org.apache.cxf.wsn.client.CreatePullPoint;
import org.apache.cxf.wsn.client.NotificationBroker;
import org.apache.cxf.wsn.client.PullPoint;
import org.apache.cxf.wsn.client.Registration;
import org.apache.cxf.wsn.client.Subscription;
import org.apache.cxf.wsn.services.JaxwsNotificationBroker;
import org.oasis_open.docs.wsn.b_2.NotificationMessageHolderType;
import org.oasis_open.docs.wsn.bw_2.NoCurrentMessageOnTopicFault;
import org.oasis_open.docs.wsrf.rw_2.ResourceUnknownFault;
import org.w3c.dom.Element;
import org.xml.sax.InputSource;

/** CXF as client and consumer of a broker, or as a broker itself; a line of output for each check. */
public final class Wsn {
    private static final int WAIT_S = 20;
    private static boolean failed;

    private Wsn() {
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("broker")) {
            broker(args[1]);
            return;
        }
        try {
            client(args[1], args[2]);
        } catch (Exception error) {
            error.printStackTrace();
            failed = true;
        }
        System.exit(failed ? 1 : 0);
    }

    /** A broker at an address, until the process is ended. */
    private static void broker(String address) throws Exception {
        ActiveMQConnectionFactory store =
            new ActiveMQConnectionFactory("vm://wsn?broker.persistent=false&broker.useJmx=false");
        JaxwsNotificationBroker broker = new JaxwsNotificationBroker("broker", store);
        broker.setAddress(address);
        broker.init();
        System.out.println("listening on " + address);
        System.out.flush();
        Thread.currentThread().join();
    }

    private static void check(String name, boolean good, Object came) {
        System.out.println((good ? "ok  " : "FAIL") + "  CXF client: " + name
            + (good ? "" : ": " + came));
        failed |= !good;
    }

    private static Element element(String text) throws Exception {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setNamespaceAware(true);
        return factory.newDocumentBuilder().parse(new InputSource(new StringReader(text)))
            .getDocumentElement();
    }

    private static String text(NotificationMessageHolderType message) {
        return ((Element) message.getMessage().getAny()).getTextContent();
    }

    /** Every operation that the client of CXF has, at a broker of another. */
    private static void client(String url, String own) throws Exception {
        NotificationBroker broker = new NotificationBroker(url);
        BlockingQueue<NotificationMessageHolderType> came = new LinkedBlockingQueue<>();
        Consumer consumer = new Consumer(came::add, own);
        Subscription subscription = broker.subscribe(consumer, "cxf");
        broker.notify("cxf", element("<t:track xmlns:t='urn:t'>one</t:track>"));
        NotificationMessageHolderType message = came.poll(WAIT_S, TimeUnit.SECONDS);
        check("a Notify arrives", message != null && text(message).equals("one"), message);
        String topic = message == null ? "" : message.getTopic().getContent().toString();
        check("its topic is the one that was subscribed to", topic.equals("[cxf]"), topic);

        subscription.pause();
        broker.notify("cxf", element("<t:track xmlns:t='urn:t'>two</t:track>"));
        check("paused, nothing arrives", came.poll(2, TimeUnit.SECONDS) == null, "a message");
        subscription.resume();
        message = came.poll(WAIT_S, TimeUnit.SECONDS);
        check("resumed, it arrives", message != null && text(message).equals("two"), message);
        subscription.renew("PT1H");
        check("renewed", true, "");

        Subscription other =
            broker.subscribe(consumer, "filtered", "/*[local-name() = 'track'][@id = 7]");
        other.unsubscribe();
        check("a filter by content is taken", true, "");

        PullPoint point = new CreatePullPoint(url).create();
        broker.subscribe(point, "pulled");
        broker.notify("pulled", element("<t:track xmlns:t='urn:t'>three</t:track>"));
        List<NotificationMessageHolderType> pulled = point.getMessages(10);
        check("a pull point has it",
            pulled.size() == 1 && text(pulled.get(0)).equals("three"), pulled.size());
        point.destroy();
        try {
            point.getMessages(1);
            check("a pull point that is gone is unknown", false, "messages");
        } catch (ResourceUnknownFault fault) {
            check("a pull point that is gone is unknown", true, "");
        }
        try {
            broker.getCurrentMessage("nothing");
            check("no current message is a fault", false, "a message");
        } catch (NoCurrentMessageOnTopicFault fault) {
            check("no current message is a fault", true, "");
        }
        Registration registration = broker.registerPublisher(consumer, "cxf", false);
        registration.destroy();
        check("a publisher registers and goes", true, "");

        subscription.unsubscribe();
        try {
            subscription.renew("PT1H");
            check("a subscription that is gone is unknown", false, "an answer");
        } catch (ResourceUnknownFault fault) {
            check("a subscription that is gone is unknown", true, "");
        }
        consumer.stop();
    }
}
