package longwire;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.glassfish.embeddable.CommandResult;
import org.glassfish.embeddable.CommandRunner;
import org.glassfish.embeddable.GlassFish;
import org.glassfish.embeddable.GlassFishException;
import org.glassfish.embeddable.GlassFishProperties;
import org.glassfish.embeddable.GlassFishRuntime;

/** Starts an embedded GlassFish with the tracks service in it. */
public final class Serve {
    private static final String LISTENER =
            "configs.config.server-config.network-config.network-listeners.network-listener."
                    + "http-listener.";

    /** What the process ends with: 0 when it is told to end. */
    private static volatile int status;

    private Serve() {}

    /** Arguments: the options of interop/glassfish/serve. */
    public static void main(String[] arguments) {
        // The server takes System.out for its log.
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
        try {
            Options options = new Options(arguments);
            String[] address = options.listen();
            System.setProperty("longwire.files", options.files().toString());
            Map<String, String> settings = options.settings();
            Path scratch = Files.createTempDirectory(options.scratch(), "glassfish-");
            endWith(scratch);
            resolveNothing(scratch);
            address[1] = port(address);
            start(scratch, address, settings);
            out.println("listening on " + address[0] + ":" + address[1]);
        } catch (IllegalArgumentException bad) {
            System.err.println("glassfish: " + bad.getMessage());
            Runtime.getRuntime().halt(2);
        } catch (IOException | GlassFishException failed) {
            System.err.println("glassfish: cannot start: " + failed);
            status = 1;
            System.exit(status);
        }
    }

    /**
     * The server asks for its host's own name, and where no name server answers that takes 20 s. So
     * there are two names and no asking; it must be said before the first address is used.
     */
    private static void resolveNothing(Path scratch) throws IOException {
        String name = Files.readString(Path.of("/proc/sys/kernel/hostname")).trim();
        Path hosts = scratch.resolve("hosts");
        Files.writeString(hosts, "127.0.0.1 localhost " + name + "\n");
        System.setProperty("jdk.net.hosts.file", hosts.toString());
    }

    /** The server tells neither that a port is taken nor which one it got for 0: found out here. */
    private static String port(String[] address) throws IOException {
        int port = Integer.parseInt(address[1]);
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getByName(address[0]))) {
            return String.valueOf(socket.getLocalPort());
        }
    }

    private static void start(Path scratch, String[] address, Map<String, String> settings)
            throws GlassFishException {
        // It complains of the listener that is closed on purpose and of a message broker not used.
        Logger.getLogger("").setLevel(Level.OFF);
        // Everything that it writes goes where the end of the process removes it.
        System.setProperty("java.io.tmpdir", scratch.toString());
        System.setProperty("glassfish.embedded.tmpdir", scratch.toString());
        GlassFish server = GlassFishRuntime.bootstrap().newGlassFish(new GlassFishProperties());
        server.start();
        CommandRunner runner = server.getCommandRunner();
        // The listener is still closed: one that is open starts again with each of its settings.
        set(runner, settings);
        String application = System.getProperty("longwire.application");
        if (server.getDeployer().deploy(new File(application), "--contextroot=/") == null) {
            throw new GlassFishException("the application was refused");
        }
        set(runner, Map.of(LISTENER + "address", address[0], LISTENER + "port", address[1]));
        set(runner, Map.of(LISTENER + "enabled", "true"));
        readBack(runner, settings);
    }

    private static void set(CommandRunner runner, Map<String, String> settings)
            throws GlassFishException {
        for (Map.Entry<String, String> setting : settings.entrySet()) {
            run(runner, "set", setting.getKey() + "=" + setting.getValue());
        }
    }

    /** Prints what is in force, and refuses to go on with anything else than was asked for. */
    private static void readBack(CommandRunner runner, Map<String, String> settings)
            throws GlassFishException {
        for (Map.Entry<String, String> setting : settings.entrySet()) {
            String line = setting.getKey() + "=" + setting.getValue();
            String output = run(runner, "get", setting.getKey());
            if (!List.of(output.split("\\s+")).contains(line)) {
                throw new GlassFishException("asked for " + line + " but in force is " + output);
            }
            System.err.println("glassfish: " + line.substring(line.indexOf("network-config.") + 15));
        }
    }

    private static String run(CommandRunner runner, String command, String... arguments)
            throws GlassFishException {
        CommandResult result = runner.run(command, arguments);
        if (result.getExitStatus() != CommandResult.ExitStatus.SUCCESS) {
            throw new GlassFishException(command + " " + String.join(" ", arguments) + ": "
                    + result.getOutput());
        }
        return result.getOutput();
    }

    /** SIGTERM ends the process at once: there is nothing in it that anybody keeps. */
    private static void endWith(Path scratch) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            delete(scratch);
            Runtime.getRuntime().halt(status);
        }));
    }

    private static void delete(Path folder) {
        try (Stream<Path> paths = Files.walk(folder)) {
            paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException gone) {
            // Another part of the server removed it first.
        }
    }
}
