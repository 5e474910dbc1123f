/** Deliveries from Kafka, acknowledged after commit; the only place that imports Reactor Kafka and the Kafka client. */
@NullMarked
package io.onceflux.kafka;

import org.jspecify.annotations.NullMarked;
