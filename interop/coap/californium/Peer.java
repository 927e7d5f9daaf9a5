import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapObserveRelation;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/**
 * Californium as a server (serve PORT), or as a client that reads what to ask from stdin, a line
 * each: METHOD GATEWAY URL BYTES, where BYTES are those of a body, or of OBSERVE the notifications
 * that are waited for. It prints a line for each answer: code, length, CRC-32, format, Max-Age.
 */
final class Peer {
    private static final int LARGE_BYTES = 100_000;
    private static final long WAIT_MS = 15_000;
    private static final int CLOCK_MS = 300;

    public static void main(String[] args) throws Exception {
        CoapConfig.register();
        UdpConfig.register();
        Configuration config = Configuration.createStandardWithoutFile();
        config.set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 1 << 20);
        Configuration.setStandard(config);
        if (args[0].equals("serve")) {
            serve(config, Integer.parseInt(args[1]));
        } else {
            ask();
        }
    }

    private static byte[] body(int length, int factor, int modulus) {
        byte[] body = new byte[length];
        for (int i = 0; i < length; i++) {
            body[i] = (byte) (i * (long) factor % modulus);
        }
        return body;
    }

    private static void serve(Configuration config, int port) {
        CoapServer server = new CoapServer(config, port);
        server.add(new CoapResource("large") {
            @Override
            public void handleGET(CoapExchange exchange) {
                byte[] large = body(LARGE_BYTES, 7, 251);
                exchange.respond(
                        CoAP.ResponseCode.CONTENT, large, MediaTypeRegistry.APPLICATION_OCTET_STREAM);
            }
        });
        server.add(new Stored());
        server.add(new Clock());
        server.start();
        System.out.println("ready");
    }

    /** Keeps what is put there. */
    private static final class Stored extends CoapResource {
        private byte[] stored;

        Stored() {
            super("stored");
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            if (stored == null) {
                exchange.respond(CoAP.ResponseCode.NOT_FOUND);
            } else {
                exchange.respond(CoAP.ResponseCode.CONTENT, stored);
            }
        }

        @Override
        public void handlePUT(CoapExchange exchange) {
            boolean isNew = stored == null;
            stored = exchange.getRequestPayload();
            exchange.respond(isNew ? CoAP.ResponseCode.CREATED : CoAP.ResponseCode.CHANGED);
        }

        @Override
        public void handleFETCH(CoapExchange exchange) {
            int length = Integer.parseInt(exchange.getRequestText());
            exchange.respond(CoAP.ResponseCode.CONTENT, Arrays.copyOf(stored, length));
        }

        @Override
        public void handleDELETE(CoapExchange exchange) {
            stored = null;
            exchange.respond(CoAP.ResponseCode.DELETED);
        }
    }

    /** Counts, and says so. */
    private static final class Clock extends CoapResource {
        private volatile int count;

        Clock() {
            super("clock");
            setObservable(true);
            getAttributes().setObservable();
            new Timer(true).schedule(new TimerTask() {
                @Override
                public void run() {
                    count++;
                    changed();
                }
            }, CLOCK_MS, CLOCK_MS);
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.respond(Integer.toString(count));
        }
    }

    private static void ask() throws Exception {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            int number = Integer.parseInt(words[3]);
            if (words[0].equals("OBSERVE")) {
                observe(request(CoAP.Code.GET, words), number);
                continue;
            }
            Request request = request(CoAP.Code.valueOf(words[0]), words);
            if (number > 0) {
                request.setPayload(body(number, 11, 253));
            }
            request.send();
            show(request.waitForResponse(WAIT_MS));
        }
        System.exit(0);
    }

    private static Request request(CoAP.Code code, String[] words) {
        Request request = new Request(code);
        request.setURI(words[1]);
        request.getOptions().setProxyUri(words[2]);
        return request;
    }

    private static void observe(Request request, int count) throws InterruptedException {
        BlockingQueue<Response> seen = new LinkedBlockingQueue<>();
        request.setObserve();
        CoapObserveRelation relation = new CoapClient().observe(request, new CoapHandler() {
            @Override
            public void onLoad(CoapResponse response) {
                seen.add(response.advanced());
            }

            @Override
            public void onError() {
                System.out.println("failed");
            }
        });
        for (int i = 0; i < count; i++) {
            show(seen.poll(WAIT_MS, TimeUnit.MILLISECONDS));
        }
        relation.proactiveCancel();
    }

    private static void show(Response response) {
        if (response == null) {
            System.out.println("nothing");
            return;
        }
        byte[] payload = response.getPayload();
        CRC32 crc = new CRC32();
        crc.update(payload);
        System.out.println(String.format("%s %d %08x %d %d", response.getCode(), payload.length,
                crc.getValue(), response.getOptions().getContentFormat(),
                response.getOptions().getMaxAge()));
    }
}
