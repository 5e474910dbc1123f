package io.onceflux;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Result;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.reactivestreams.Publisher;

/** A batch whose statements are looked at, and whose execution passes through something on its way to the caller. */
record InterceptedBatch(Batch delegate, Consumer<String> onAdd, UnaryOperator<Publisher<? extends Result>> onExecute)
        implements Batch {

    @Override
    public Batch add(String sql) {
        onAdd.accept(sql);
        delegate.add(sql);
        return this;
    }

    @Override
    public Publisher<? extends Result> execute() {
        return onExecute.apply(delegate.execute());
    }
}
