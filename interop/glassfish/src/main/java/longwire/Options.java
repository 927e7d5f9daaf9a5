package longwire;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The command line, and what each option is called among the server's own settings. */
final class Options {
    private static final String HTTP = "protocols.protocol.http-listener.http.";
    private static final String TCP = "transports.transport.tcp.";
    private static final String SERVER = "configs.config.server-config.network-config.";

    /** Largest buffer, bytes, and longest time, seconds, that are taken. */
    private static final int MAX_BYTES = 1 << 24;
    private static final int MAX_SECONDS = 86_400;

    private static final Map<String, String> ON_OFF = Map.of("on", "true", "off", "false");
    private static final Map<String, String> COMPRESSION =
            Map.of("off", "off", "on", "on", "force", "force", "forced", "force");

    /** What the values of an option are. */
    private enum Kind { SWITCH, COMPRESSION, BYTES, SECONDS, MILLISECONDS }

    /** One option: its name, kind, default (Table III of IST-118) and the server's name for it. */
    private record Setting(String option, Kind kind, String preset, String key) {}

    private static final List<Setting> SETTINGS = List.of(
            new Setting("chunking", Kind.SWITCH, "off", HTTP + "chunking-enabled"),
            new Setting("compression", Kind.COMPRESSION, "off", HTTP + "compression"),
            new Setting("nodelay", Kind.SWITCH, "on", TCP + "tcp-no-delay"),
            new Setting("send-buffer", Kind.BYTES, "32768", HTTP + "send-buffer-size-bytes"),
            new Setting("header-buffer", Kind.BYTES, "32768", HTTP + "header-buffer-length-bytes"),
            new Setting("tcp-buffer", Kind.BYTES, "32768", TCP + "buffer-size-bytes"),
            new Setting("keep-alive-timeout", Kind.SECONDS, "180", HTTP + "timeout-seconds"),
            new Setting("idle-timeout", Kind.SECONDS, "120", TCP + "idle-key-timeout-seconds"),
            new Setting("read-timeout", Kind.MILLISECONDS, "120", TCP + "read-timeout-millis"),
            new Setting("write-timeout", Kind.MILLISECONDS, "120", TCP + "write-timeout-millis"),
            new Setting("poll-timeout", Kind.MILLISECONDS, "120",
                    TCP + "selector-poll-timeout-millis"));

    private final Map<String, String> given = new LinkedHashMap<>();

    /**
     * Reads {@code --name value} pairs.
     *
     * @throws IllegalArgumentException with the one line to print
     */
    Options(String[] arguments) {
        for (int at = 0; at < arguments.length; at += 2) {
            String name = arguments[at].replaceFirst("^--", "");
            if (!arguments[at].startsWith("--") || !known(name)) {
                throw new IllegalArgumentException("no option '" + arguments[at] + "'; see --help");
            }
            if (at + 1 == arguments.length) {
                throw new IllegalArgumentException("--" + name + " has no value; give one");
            }
            given.put(name, arguments[at + 1]);
        }
    }

    private static boolean known(String name) {
        return List.of("listen", "files", "scratch").contains(name)
                || SETTINGS.stream().anyMatch(setting -> setting.option.equals(name));
    }

    /** Host and port to listen at; port 0 stands for any free one. */
    String[] listen() {
        String address = given.getOrDefault("listen", "127.0.0.1:8080");
        if (!address.matches("[0-9.]+:(0|[1-9][0-9]{0,4})")) {
            throw new IllegalArgumentException(
                    "--listen " + address + " is no IPv4 address and port; give one such as "
                            + "0.0.0.0:8080");
        }
        return address.split(":");
    }

    /** The folder that interop/tracks-files has filled. */
    Path files() {
        Path files = Path.of(given.getOrDefault("files", ""));
        if (!given.containsKey("files") || !Files.exists(files.resolve("complete"))) {
            throw new IllegalArgumentException(
                    "--files '" + files + "' holds no tracks; fill it with interop/tracks-files");
        }
        return files.toAbsolutePath();
    }

    /** Where the instance's own folder is made. */
    Path scratch() {
        return Path.of(given.getOrDefault("scratch", System.getProperty("java.io.tmpdir")));
    }

    /** Settings of the server and their values, in its own words, all of them. */
    Map<String, String> settings() {
        Map<String, String> settings = new LinkedHashMap<>();
        for (Setting setting : SETTINGS) {
            settings.put(SERVER + setting.key, value(setting));
        }
        // By default only a few types, JSON not among them, and only from 2048 bytes on.
        settings.put(SERVER + HTTP + "compressable-mime-type",
                "text/xml,application/xml,application/json");
        settings.put(SERVER + HTTP + "compression-min-size-bytes", "1");
        return settings;
    }

    private String value(Setting setting) {
        String text = given.getOrDefault(setting.option, setting.preset);
        return switch (setting.kind) {
            case SWITCH -> word(setting, text, ON_OFF);
            case COMPRESSION -> word(setting, text, COMPRESSION);
            case BYTES -> String.valueOf(number(setting, text, MAX_BYTES));
            case SECONDS -> String.valueOf(number(setting, text, MAX_SECONDS));
            case MILLISECONDS -> String.valueOf(number(setting, text, MAX_SECONDS) * 1000);
        };
    }

    private static String word(Setting setting, String text, Map<String, String> words) {
        if (!words.containsKey(text)) {
            throw new IllegalArgumentException("--" + setting.option + " '" + text
                    + "' is unknown; give one of " + String.join(", ", words.keySet()));
        }
        return words.get(text);
    }

    private static int number(Setting setting, String text, int limit) {
        if (text.matches("[0-9]{1,8}") && Integer.parseInt(text) >= 1
                && Integer.parseInt(text) <= limit) {
            return Integer.parseInt(text);
        }
        throw new IllegalArgumentException("--" + setting.option + " '" + text
                + "' is out of range; give 1 to " + limit);
    }
}
