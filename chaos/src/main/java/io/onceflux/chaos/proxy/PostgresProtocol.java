package io.onceflux.chaos.proxy;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** The moment is a COMMIT: as a simple query, or parsed for the extended protocol, which then runs it at once. */
final class PostgresProtocol implements Protocol {

    private static final char QUERY = 'Q';
    private static final char PARSE = 'P';

    /** The first message of a connection has no type. Without TLS there is just one such. */
    private boolean started;

    @Override
    public Frame next(DataInputStream fromClient) throws IOException {
        int header = started ? 1 : 0;
        byte type = started ? fromClient.readByte() : 0;
        started = true;
        int length = fromClient.readInt();
        ByteBuffer message = ByteBuffer.allocate(header + length);
        if (header > 0) {
            message.put(type);
        }
        message.putInt(length);
        fromClient.readFully(message.array(), message.position(), length - Integer.BYTES);
        return new Frame(message.array(), isCommit(type, message.array()));
    }

    private static boolean isCommit(byte type, byte[] message) {
        return switch ((char) type) {
            case QUERY -> "COMMIT".equalsIgnoreCase(texts(message).get(0).strip());
            // The name of the statement comes first.
            case PARSE -> "COMMIT".equalsIgnoreCase(texts(message).get(1).strip());
            default -> false;
        };
    }

    /** The first two texts of a message with a type. */
    private static List<String> texts(byte[] message) {
        List<String> texts = new ArrayList<>();
        int start = 1 + Integer.BYTES;
        for (int end = start; end < message.length && texts.size() < 2; end++) {
            if (message[end] == 0) {
                texts.add(new String(message, start, end - start, UTF_8));
                start = end + 1;
            }
        }
        return texts;
    }
}
