import jakarta.jms.*;
import java.util.concurrent.*;
import org.apache.qpid.jms.JmsConnectionFactory;

/** AMQP 1.0 with Qpid JMS: each line is a check, ok or FAIL with what came instead. */
public class Jms {
    static final long MAX_STEP_MS = 20_000;
    static int failed;

    interface Step { void run() throws Exception; }

    static void step(String name, Step step) {
        try {
            step.run();
            System.out.println("ok    JMS: " + name);
        } catch (Throwable error) {
            failed++;
            System.out.println("FAIL  JMS: " + name + ": " + error);
        }
    }

    static void same(Object expected, Object came) {
        if (!expected.equals(came)) throw new AssertionError("expected " + expected + ", came " + came);
    }

    static Connection connect(String url, String id) throws Exception {
        Connection connection = new JmsConnectionFactory(url).createConnection();
        if (id != null) connection.setClientID(id);
        connection.start();
        return connection;
    }

    static String text(MessageConsumer consumer) throws Exception {
        Message message = consumer.receive(MAX_STEP_MS);
        return message == null ? "nothing" : ((TextMessage) message).getText();
    }

    public static void main(String[] args) throws Exception {
        String url = "amqp://127.0.0.1:" + args[0] + "?amqp.saslMechanisms=ANONYMOUS";
        Connection connection = connect(url, null);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        step("topic subscriber", () -> {
            Topic topic = session.createTopic("jms/one");
            MessageConsumer consumer = session.createConsumer(topic);
            session.createProducer(topic).send(session.createTextMessage("hello"));
            same("hello", text(consumer));
            consumer.close();
        });
        step("bytes, properties, ttl, reply-to, correlation, priority", () -> {
            Topic topic = session.createTopic("jms/two");
            MessageConsumer consumer = session.createConsumer(topic);
            BytesMessage sent = session.createBytesMessage();
            sent.writeBytes(new byte[] {0, (byte) 0xff, 7});
            sent.setStringProperty("text", "ä");
            sent.setIntProperty("number", 5);
            sent.setJMSCorrelationID("c");
            sent.setJMSReplyTo(session.createTopic("answers"));
            MessageProducer producer = session.createProducer(topic);
            producer.send(sent, DeliveryMode.PERSISTENT, 8, 60_000);
            BytesMessage came = (BytesMessage) consumer.receive(MAX_STEP_MS);
            byte[] bytes = new byte[3];
            came.readBytes(bytes);
            same((byte) 0xff, bytes[1]);
            same("ä", came.getStringProperty("text"));
            same(5, came.getIntProperty("number"));
            same("c", came.getJMSCorrelationID());
            same("answers", ((Topic) came.getJMSReplyTo()).getTopicName());
            same(8, came.getJMSPriority());
            same("jms/two", ((Topic) came.getJMSDestination()).getTopicName());
            if (came.getJMSExpiration() == 0) throw new AssertionError("no expiration");
            same(sent.getJMSMessageID(), came.getJMSMessageID());
            consumer.close();
        });
        step("a map", () -> {
            Topic topic = session.createTopic("jms/map");
            MessageConsumer consumer = session.createConsumer(topic);
            MapMessage sent = session.createMapMessage();
            sent.setLong("n", 1L << 40);
            session.createProducer(topic).send(sent);
            same(1L << 40, ((MapMessage) consumer.receive(MAX_STEP_MS)).getLong("n"));
            consumer.close();
        });
        step("selector", () -> {
            Topic topic = session.createTopic("jms/three");
            MessageConsumer consumer = session.createConsumer(topic, "n > 1 AND kind IN ('a', 'b')");
            MessageProducer producer = session.createProducer(topic);
            for (int n = 0; n < 4; n++) {
                TextMessage message = session.createTextMessage("n" + n);
                message.setIntProperty("n", n);
                message.setStringProperty("kind", n == 2 ? "c" : "a");
                producer.send(message);
            }
            same("n3", text(consumer));
            consumer.close();
        });
        step("no local", () -> {
            Topic topic = session.createTopic("jms/local");
            MessageConsumer own = session.createConsumer(topic, null, true);
            MessageConsumer other = session.createConsumer(topic);
            session.createProducer(topic).send(session.createTextMessage("x"));
            same("x", text(other));
            if (own.receiveNoWait() != null) throw new AssertionError("its own came");
            own.close();
            other.close();
        });
        step("durable subscriber gets what came while it was away", () -> {
            Topic topic = session.createTopic("jms/four");
            Connection first = connect(url, "jms-client");
            Session one = first.createSession(false, Session.AUTO_ACKNOWLEDGE);
            one.createDurableConsumer(topic, "sub");
            first.close();
            session.createProducer(topic).send(session.createTextMessage("away"));
            Connection second = connect(url, "jms-client");
            Session two = second.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = two.createDurableConsumer(topic, "sub");
            same("away", text(consumer));
            consumer.close();
            two.unsubscribe("sub");
            try {
                two.unsubscribe("sub");
                throw new AssertionError("it was unsubscribed twice");
            } catch (InvalidDestinationException expected) {
                // There is none any more.
            }
            second.close();
        });
        step("shared subscriptions, durable and not", () -> {
            Topic topic = session.createTopic("jms/five");
            Connection one = connect(url, null);
            Connection two = connect(url, null);
            Session first = one.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Session second = two.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer a = first.createSharedDurableConsumer(topic, "shared");
            MessageProducer producer = session.createProducer(topic);
            for (int n = 0; n < 10; n++) producer.send(session.createTextMessage("m" + n));
            for (int n = 0; n < 10; n++) same("m" + n, text(a));
            Topic other = session.createTopic("jms/volatile");
            MessageConsumer b = second.createSharedConsumer(other, "volatile");
            MessageConsumer c = first.createSharedConsumer(other, "volatile");
            producer = session.createProducer(other);
            for (int n = 0; n < 10; n++) producer.send(session.createTextMessage("m" + n));
            int came = 0;
            while (b.receive(500) != null) came++;
            int rest = 0;
            while (c.receive(500) != null) rest++;
            same(10, came + rest);
            if (came == 0 || rest == 0) throw new AssertionError("one got all");
            a.close();
            first.unsubscribe("shared");
            one.close();
            two.close();
        });
        step("temporary topic and queue for answers", () -> {
            for (int n = 0; n < 2; n++) {
                Destination answers = n == 0 ? session.createTemporaryTopic() : session.createTemporaryQueue();
                MessageConsumer consumer = session.createConsumer(answers);
                Connection other = connect(url, null);
                Session far = other.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Topic topic = far.createTopic("jms/six");
                MessageConsumer server = far.createConsumer(topic);
                TextMessage request = session.createTextMessage("question");
                request.setJMSReplyTo(answers);
                session.createProducer(topic).send(request);
                Message came = server.receive(MAX_STEP_MS);
                far.createProducer(null).send(came.getJMSReplyTo(), far.createTextMessage("answer"));
                same("answer", text(consumer));
                other.close();
                consumer.close();
            }
        });
        step("client acknowledgement and recovery", () -> {
            Session acked = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            Topic topic = acked.createTopic("jms/seven");
            MessageConsumer consumer = acked.createConsumer(topic);
            acked.createProducer(topic).send(acked.createTextMessage("again"));
            same("again", text(consumer));
            acked.recover();
            Message came = consumer.receive(MAX_STEP_MS);
            same(true, came.getJMSRedelivered());
            came.acknowledge();
            acked.close();
        });
        step("10,000 messages in order", () -> {
            Topic topic = session.createTopic("jms/many");
            MessageConsumer consumer = session.createConsumer(topic);
            MessageProducer producer = session.createProducer(topic);
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            for (int n = 0; n < 10_000; n++) producer.send(session.createTextMessage("" + n));
            for (int n = 0; n < 10_000; n++) same("" + n, text(consumer));
            consumer.close();
        });
        step("a transaction is refused", () -> {
            try {
                connection.createSession(true, Session.SESSION_TRANSACTED);
                throw new AssertionError("it began");
            } catch (JMSException expected) {
                if (!expected.getMessage().contains("transactions")) throw expected;
            }
        });
        connection.close();
        System.exit(failed > 0 ? 1 : 0);
    }
}
