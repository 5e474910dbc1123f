/** Deliveries from Kafka; the only place that will import Reactor Kafka. */
@NullMarked
package io.onceflux.kafka;

import org.jspecify.annotations.NullMarked;
