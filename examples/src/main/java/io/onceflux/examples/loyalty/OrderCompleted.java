package io.onceflux.examples.loyalty;

/** The event of the shop, as JSON: {@code {"orderId": "A-1001", "customerId": "C-7", "points": 25}}. */
public record OrderCompleted(String orderId, String customerId, long points) {}
