package io.onceflux;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * What tells apart messages that come under one key: the first eight bytes of a SHA-256. Two that differ have the same once in
 * 2<sup>64</sup>.
 *
 * @param <T> the payload
 */
@FunctionalInterface
interface Fingerprint<T> {

    /** Of a message; null if it has none, and then it equals any. */
    @Nullable
    Long of(Delivery<? extends T> delivery, T payload);

    /** Of the body as it arrived. A message that had none is another one than one whose body is empty. */
    static long ofBody(Delivery<?> delivery) {
        byte[] body = Identify.call("the body", Delivery::body, delivery);
        if (body == null) {
            throw new PermanentFailure(
                    "its delivery has no body that fingerprintedByBody could compare; use fingerprintedBy, or give it a body");
        }
        return body.length == 0 && delivery.headers().containsKey(Delivery.NO_BODY)
                ? ofText(Delivery.NO_BODY)
                : ofBytes(body);
    }

    static long ofBytes(byte[] content) {
        return ByteBuffer.wrap(Sha256.of(content)).getLong();
    }

    static long ofText(String content) {
        return ofBytes(content.getBytes(StandardCharsets.UTF_8));
    }
}
