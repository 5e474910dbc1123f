package io.onceflux.testkit;

import io.r2dbc.spi.ColumnMetadata;
import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import io.r2dbc.spi.Statement;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/** A statement that is answered with the isolation level, the one thing that a consumer asks a database itself. */
final class FixedAnswer implements Statement {

    @Override
    public Publisher<? extends Result> execute() {
        return Mono.just(new OneRow("read committed"));
    }

    @Override
    public Statement add() {
        return this;
    }

    @Override
    public Statement bind(int index, Object value) {
        return this;
    }

    @Override
    public Statement bind(String name, Object value) {
        return this;
    }

    @Override
    public Statement bindNull(int index, Class<?> type) {
        return this;
    }

    @Override
    public Statement bindNull(String name, Class<?> type) {
        return this;
    }

    private record OneRow(String answer) implements Result {

        @Override
        public Publisher<Long> getRowsUpdated() {
            return Mono.just(1L);
        }

        @Override
        public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
            return map(row -> mapping.apply((Row) row, ((Row) row).getMetadata()));
        }

        @Override
        public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
            return Mono.fromSupplier(() -> mapping.apply(new OneText(answer)));
        }

        @Override
        public Result filter(Predicate<Segment> filter) {
            return this;
        }

        @Override
        public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
            throw new UnsupportedOperationException();
        }
    }

    private record OneText(String answer) implements Row, RowMetadata {

        @Override
        public <T> T get(int index, Class<T> type) {
            return type.cast(answer);
        }

        @Override
        public <T> T get(String name, Class<T> type) {
            return type.cast(answer);
        }

        @Override
        public RowMetadata getMetadata() {
            return this;
        }

        @Override
        public ColumnMetadata getColumnMetadata(int index) {
            throw new UnsupportedOperationException();
        }

        @Override
        public ColumnMetadata getColumnMetadata(String name) {
            throw new UnsupportedOperationException();
        }

        @Override
        public List<? extends ColumnMetadata> getColumnMetadatas() {
            return List.of();
        }
    }
}
