package io.onceflux;

import java.util.Map;
import java.util.stream.Collectors;
import org.springframework.transaction.NoTransactionException;
import org.springframework.transaction.reactive.TransactionContextManager;
import org.springframework.transaction.reactive.TransactionSynchronizationManager;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;

/** The Spring transaction that a caller may have in its Reactor context. */
final class CallersTransaction {

    private static final String SPRINGS = TransactionContextManager.class.getPackageName();

    private CallersTransaction() {}

    /** Whether the caller is in a transaction. */
    static Mono<Boolean> isActive() {
        return TransactionSynchronizationManager.forCurrentTransaction()
                .map(TransactionSynchronizationManager::isActualTransactionActive)
                .onErrorReturn(NoTransactionException.class, false);
    }

    /**
     * The context without any trace of a transaction. Lanes run side by side, and would otherwise share, and suspend under
     * each other's hands, the one that the subscriber happened to be in.
     */
    static Context without(Context context) {
        Map<Object, Object> others = context.stream()
                .filter(entry -> !(entry.getKey() instanceof Class<?> type
                        && type.getPackageName().equals(SPRINGS)))
                .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
        return Context.of(others);
    }
}
