package io.onceflux;

import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/**
 * A result that tells when the server has really answered: with a row, a count, an error or the end. That a driver hands out
 * a result says less: it may do so while the statement is being prepared, before it is executed.
 *
 * <p>Errors that the caller's code throws are caught before the driver meets them.
 */
record InterceptedResult(Result delegate, Answer answer, ThrownErrors thrown) implements Result {

    @Override
    public Publisher<Long> getRowsUpdated() {
        return telling(Flux.from(delegate.getRowsUpdated()).doOnNext(answer::rows));
    }

    @Override
    public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
        return telling(
                delegate.<T>map((row, metadata) -> ThrownErrors.asExceptions(() -> mapping.apply(row, metadata))));
    }

    @Override
    public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
        return telling(delegate.<T>map(readable -> ThrownErrors.asExceptions(() -> mapping.apply(readable))));
    }

    @Override
    public Result filter(Predicate<Segment> predicate) {
        return new InterceptedResult(
                delegate.filter(segment -> {
                    answer.came();
                    return ThrownErrors.asExceptions(() -> predicate.test(segment));
                }),
                answer,
                thrown);
    }

    @Override
    public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
        return telling(delegate.<T>flatMap(segment -> {
            answer.came();
            return ThrownErrors.asExceptions(() -> mapping.apply(segment));
        }));
    }

    private <T> Flux<T> telling(Publisher<T> values) {
        ThrownErrors.Observer<T, T> telling = new ThrownErrors.Observer<>() {
            @Override
            public T onNext(T value) {
                answer.came();
                return value;
            }

            @Override
            public void onEnd() {
                answer.came();
            }

            @Override
            public void onCancel() {
                answer.isNotWaitedFor();
            }
        };
        return thrown.guard(values, () -> telling);
    }

    /** Is told what becomes of the server's answer. */
    interface Answer {

        /** The server has answered; may be called again. */
        void came();

        /** It has affected so many rows; told only where somebody asks. */
        default void rows(long count) {}

        /** Nobody waits any more, whether it has come or not. */
        void isNotWaitedFor();
    }
}
