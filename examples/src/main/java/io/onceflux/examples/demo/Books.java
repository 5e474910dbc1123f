package io.onceflux.examples.demo;

/**
 * What the tables and the broker say when everything is over.
 *
 * @param orders distinct orders that were published
 * @param deliveries messages that were published
 * @param credits rows in the ledger
 * @param creditedOrders distinct orders in the ledger
 * @param pointsDue points that the published orders are worth
 * @param points points that the customers have
 * @param wrongBalances customers whose balance is not what their orders are worth
 * @param queued messages left in the queue
 * @param deadLetters messages in the dead-letter queue
 */
record Books(
        long orders,
        long deliveries,
        long credits,
        long creditedOrders,
        long pointsDue,
        long points,
        long wrongBalances,
        long queued,
        long deadLetters) {

    long excess() {
        return points - pointsDue;
    }

    /** Deliveries that are neither a credit, nor waiting, nor given up. */
    long duplicates() {
        return deliveries - credits - queued - deadLetters;
    }

    /** Every order is credited once, to the customer whose it is, and nothing is left over. */
    boolean areExact() {
        return orders == creditedOrders
                && orders == credits
                && excess() == 0
                && wrongBalances == 0
                && queued == 0
                && deadLetters == 0;
    }
}
