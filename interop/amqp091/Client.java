import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DeliverCallback;
import com.rabbitmq.client.GetResponse;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The Java client against a broker: each line is a check, a tab, and whether it is so. */
public class Client {
    static final long MAX_STEP_MS = 10_000;

    static void check(String name, boolean good) {
        System.out.println(name + "\t" + good);
    }

    public static void main(String[] args) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost("127.0.0.1");
        factory.setPort(Integer.parseInt(args[0]));
        factory.setRequestedHeartbeat(1);
        try (Connection connection = factory.newConnection("java")) {
            confirms(connection);
            properties(connection);
            exchanges(connection);
            acknowledgements(connection);
            transactions(connection);
            // sleep: signs of life are what is checked; without them the client ends it.
            Thread.sleep(3500);
            check("the connection lives by signs of life", connection.isOpen());
        }
    }

    static void confirms(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        channel.confirmSelect();
        String queue = channel.queueDeclare().getQueue();
        for (int i = 0; i < 1000; i++) {
            channel.basicPublish("", queue, null, new byte[100]);
        }
        check("a thousand confirms", channel.waitForConfirms(MAX_STEP_MS));
        check("and as many messages", channel.messageCount(queue) == 1000);
        check("purged", channel.queuePurge(queue).getMessageCount() == 1000);
        channel.close();
    }

    static void properties(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        Map<String, Object> headers = Map.of("d", new Date(7000), "l", List.of(1, "x"), "f", 0.5, "n", 1L << 40);
        AMQP.BasicProperties sent = new AMQP.BasicProperties.Builder()
            .contentType("text/plain").headers(headers).deliveryMode(2).priority(4)
            .correlationId("c").replyTo("r").expiration("60000").messageId("m")
            .timestamp(new Date(5000)).type("t").userId("guest").appId("a").build();
        channel.basicPublish("", queue, sent, new byte[300_000]);
        GetResponse got = channel.basicGet(queue, true);
        check("a body of several frames", got.getBody().length == 300_000);
        check("properties", got.getProps().getType().equals("t")
            && got.getProps().getTimestamp().equals(new Date(5000))
            && got.getProps().getHeaders().get("d").equals(new Date(7000))
            && got.getProps().getHeaders().get("n").equals(1L << 40));
        channel.close();
    }

    static void exchanges(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        channel.exchangeDeclare("java-headers", "headers", false, true, null);
        channel.exchangeDeclare("java-topic", "topic", false, true, null);
        channel.exchangeBind("java-headers", "java-topic", "a.#");
        channel.queueBind(queue, "java-headers", "", Map.of("x-match", "any", "k", 1, "z", "y"));
        AMQP.BasicProperties fits = new AMQP.BasicProperties.Builder().headers(Map.of("k", 1)).build();
        channel.basicPublish("java-topic", "a.b", fits, "1".getBytes());
        channel.basicPublish("java-topic", "b", fits, "2".getBytes());
        channel.basicPublish("java-topic", "a", null, "3".getBytes());
        check("by headers behind words", channel.messageCount(queue) == 1);
        channel.close();
    }

    static void acknowledgements(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        // One that does not go with its consumer.
        String queue = channel.queueDeclare("java-acknowledgements", false, true, false, null).getQueue();
        channel.basicQos(10);
        BlockingQueue<Long> tags = new LinkedBlockingQueue<>();
        DeliverCallback deliver = (tag, delivery) -> tags.add(delivery.getEnvelope().getDeliveryTag());
        String consumer = channel.basicConsume(queue, false, deliver, tag -> { });
        for (int i = 0; i < 30; i++) {
            channel.basicPublish("", queue, null, new byte[1]);
        }
        long last = 0;
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 10; i++) {
                Long tag = tags.poll(MAX_STEP_MS, TimeUnit.MILLISECONDS);
                last = tag == null ? -1 : tag;
            }
            if (round < 2) {
                channel.basicAck(last, true);
            }
        }
        check("ten at a time", last == 30 && tags.isEmpty());
        channel.basicCancel(consumer);
        channel.basicRecover(true);
        check("recovered", channel.messageCount(queue) == 10);
        channel.close();
    }

    static void transactions(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        channel.txSelect();
        channel.basicPublish("", queue, null, "in".getBytes());
        channel.txCommit();
        channel.basicPublish("", queue, null, "out".getBytes());
        channel.txRollback();
        GetResponse got = channel.basicGet(queue, true);
        check("committed", Arrays.equals(got.getBody(), "in".getBytes()));
        check("rolled back", channel.basicGet(queue, true) == null);
        channel.close();
    }
}
