package io.onceflux;

import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import org.reactivestreams.Publisher;

/** A statement whose execution passes through something on its way to the caller. */
final class InterceptedStatement implements Statement {

    private final Statement delegate;
    private final OnExecute onExecute;
    private boolean severalBindings;

    InterceptedStatement(Statement delegate, OnExecute onExecute) {
        this.delegate = delegate;
        this.onExecute = onExecute;
    }

    /** What an execution passes through. */
    @FunctionalInterface
    interface OnExecute {

        /**
         * What is executed instead.
         *
         * @param severalBindings whether the driver runs the statement several times, each after the answer to the one before
         */
        Publisher<? extends Result> pass(Publisher<? extends Result> execution, boolean severalBindings);
    }

    @Override
    public Statement add() {
        severalBindings = true;
        delegate.add();
        return this;
    }

    @Override
    public Statement bind(int index, Object value) {
        delegate.bind(index, value);
        return this;
    }

    @Override
    public Statement bind(String name, Object value) {
        delegate.bind(name, value);
        return this;
    }

    @Override
    public Statement bindNull(int index, Class<?> type) {
        delegate.bindNull(index, type);
        return this;
    }

    @Override
    public Statement bindNull(String name, Class<?> type) {
        delegate.bindNull(name, type);
        return this;
    }

    @Override
    public Statement fetchSize(int rows) {
        delegate.fetchSize(rows);
        return this;
    }

    @Override
    public Statement returnGeneratedValues(String... columns) {
        delegate.returnGeneratedValues(columns);
        return this;
    }

    @Override
    public Publisher<? extends Result> execute() {
        return onExecute.pass(delegate.execute(), severalBindings);
    }
}
