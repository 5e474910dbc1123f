package io.onceflux.services;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;

/** The parts of an {@code r2dbc:postgresql://user:password@host:port/database?options} URL. */
record PostgresAddress(String host, int port, String user, String password, String database, String options) {
    private static final String PREFIX = "r2dbc:";
    static final String EXAMPLE = "r2dbc:postgresql://user:password@host:5432/database";

    static PostgresAddress parse(String url) {
        URI uri = uri(url);
        String user = uri.getRawUserInfo();
        String path = uri.getRawPath();
        if (!"postgresql".equals(uri.getScheme())
                || uri.getHost() == null
                || user == null
                || path == null
                || path.length() < 2) {
            throw notAnAddress();
        }
        int colon = user.indexOf(':');
        return new PostgresAddress(
                uri.getHost(),
                uri.getPort() < 0 ? 5432 : uri.getPort(),
                decoded(colon < 0 ? user : user.substring(0, colon)),
                decoded(colon < 0 ? "" : user.substring(colon + 1)),
                decoded(path.substring(1)),
                uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery());
    }

    String r2dbcUrl(String database) {
        String credentials = password.isEmpty() ? encoded(user) : encoded(user) + ":" + encoded(password);
        return "r2dbc:postgresql://" + credentials + "@" + host + ":" + port + "/" + encoded(database) + options;
    }

    /** Without the password. */
    @Override
    public String toString() {
        return host + ":" + port + "/" + database + " as " + user;
    }

    private static URI uri(String url) {
        if (!url.startsWith(PREFIX)) {
            throw notAnAddress();
        }
        try {
            return URI.create(url.substring(PREFIX.length()));
        } catch (IllegalArgumentException e) {
            throw notAnAddress(); // without its cause, which quotes the URL and so the password
        }
    }

    private static IllegalStateException notAnAddress() {
        return new IllegalStateException(PostgresService.URL_VARIABLE + " is not of the form " + EXAMPLE + ".");
    }

    private static String decoded(String part) {
        return URLDecoder.decode(part.replace("+", "%2B"), UTF_8);
    }

    private static String encoded(String part) {
        return URLEncoder.encode(part, UTF_8).replace("+", "%20");
    }
}
