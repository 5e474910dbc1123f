package io.onceflux;

import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import java.util.function.UnaryOperator;
import org.reactivestreams.Publisher;

/** A statement whose execution passes through something on its way to the caller. */
record InterceptedStatement(Statement delegate, UnaryOperator<Publisher<? extends Result>> onExecute)
        implements Statement {

    @Override
    public Statement add() {
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
        return onExecute.apply(delegate.execute());
    }
}
