package io.onceflux.rabbit;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A key and a certificate for {@code localhost}, by this name alone, that nobody but who has it trusts; made by the JDK's {@code keytool}. */
final class TestCertificate {

    private static final char[] PASSWORD = "changeit".toCharArray();
    private static final String ALIAS = "server";

    private final Path folder;
    private final KeyStore store;

    private TestCertificate(Path folder, KeyStore store) {
        this.folder = folder;
        this.store = store;
    }

    static TestCertificate in(Path folder) throws Exception {
        Path file = folder.resolve("server.p12");
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool")
                                .toString(),
                        "-genkeypair",
                        "-keystore",
                        file.toString(),
                        "-storepass",
                        new String(PASSWORD),
                        "-alias",
                        ALIAS,
                        "-keyalg",
                        "RSA",
                        "-keysize",
                        "2048",
                        "-validity",
                        "2",
                        "-dname",
                        "CN=localhost",
                        "-ext",
                        "BC=ca:true",
                        "-ext",
                        "SAN=dns:localhost")
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("keytool.log").toFile())
                .start();
        if (!keytool.waitFor(30, TimeUnit.SECONDS) || keytool.exitValue() != 0) {
            throw new IllegalStateException("keytool failed: " + Files.readString(folder.resolve("keytool.log")));
        }
        return new TestCertificate(folder, KeyStore.getInstance(file.toFile(), PASSWORD));
    }

    String certificate() throws GeneralSecurityException {
        return pem("CERTIFICATE", store.getCertificate(ALIAS).getEncoded());
    }

    String key() throws GeneralSecurityException {
        return pem(
                "PRIVATE KEY",
                Objects.requireNonNull(store.getKey(ALIAS, PASSWORD)).getEncoded());
    }

    Path certificateFile() throws GeneralSecurityException, IOException {
        return Files.writeString(folder.resolve("server.crt"), certificate());
    }

    Path keyFile() throws GeneralSecurityException, IOException {
        return Files.writeString(folder.resolve("server.key"), key());
    }

    /** For a client that trusts this certificate and no other. */
    SSLContext trustedAlone() throws GeneralSecurityException, IOException {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry(ALIAS, store.getCertificate(ALIAS));
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    private static String pem(String what, byte[] der) {
        return "-----BEGIN " + what + "-----\n"
                + Base64.getMimeEncoder(64, "\n".getBytes(US_ASCII)).encodeToString(der) + "\n-----END " + what
                + "-----\n";
    }
}
