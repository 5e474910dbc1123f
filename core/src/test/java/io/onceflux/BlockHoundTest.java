package io.onceflux;

import java.io.FileInputStream;
import org.junit.jupiter.api.Test;
import reactor.blockhound.BlockingOperationError;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

class BlockHoundTest {

    @Test
    void aBlockingCallOnANonBlockingThreadFailsInEveryTest() {
        Mono<Integer> blocking = Mono.fromCallable(() -> {
                    try (FileInputStream file = new FileInputStream("/dev/null")) {
                        return file.read();
                    }
                })
                .subscribeOn(Schedulers.parallel());
        StepVerifier.create(blocking).expectError(BlockingOperationError.class).verify();
    }
}
