package io.onceflux.benchmarks.variant;

import io.onceflux.benchmarks.scenario.Orders;

/**
 * What is measured as one figure: a way, and how it differs from that way's usual set-up.
 *
 * <p>It is written {@code way}, or {@code way/setting/...}, such as {@code grouped/duplicates=50/recent-keys}; these names are in
 * the reports.
 *
 * @param lanes how many transactions side by side
 * @param batch how many messages in one at most
 * @param duplicates how many of 100 messages are copies
 * @param claims false for the same without the claim
 * @param recentKeys whether a filter in memory is in front of the claims
 * @param rows how many claims are in the table before
 * @param oldClaims how many claims are in the table that are removed meanwhile, because they are too old
 * @param customers how many customers the messages are of
 * @param ordered whether messages of a customer wait for each other before they reach the database
 * @param load how the messages come
 */
public record Case(
        Way way,
        int lanes,
        int batch,
        int duplicates,
        boolean claims,
        boolean recentKeys,
        long rows,
        long oldClaims,
        int customers,
        boolean ordered,
        Load load) {

    /** How the messages come. */
    public enum Load {
        /** As fast as they are taken. */
        FULL,
        /** At half the rate that this way takes at full load. */
        HALF,
        /** At half the rate that the JDBC loop takes at full load. */
        HALF_OF_JDBC
    }

    public static Case parse(String text) {
        String[] parts = text.split("/", -1);
        Way way = Way.of(parts[0]);
        int lanes = way.lanes();
        int batch = way.batch();
        int duplicates = 0;
        boolean claims = true;
        boolean recentKeys = false;
        long rows = 0;
        long oldClaims = 0;
        int customers = Orders.CUSTOMERS;
        boolean ordered = true;
        Load load = Load.FULL;
        for (int i = 1; i < parts.length; i++) {
            String setting = parts[i];
            switch (setting.replaceAll("=.*", "")) {
                case "lanes" -> lanes = number(setting);
                case "batch" -> batch = number(setting);
                case "duplicates" -> duplicates = number(setting);
                case "without-claim" -> claims = false;
                case "recent-keys" -> recentKeys = true;
                case "rows" -> rows = number(setting);
                case "old-claims" -> oldClaims = number(setting);
                case "customers" -> customers = number(setting);
                case "unordered" -> ordered = false;
                case "half-load" -> load = Load.HALF;
                case "half-load-of-jdbc" -> load = Load.HALF_OF_JDBC;
                default -> throw new IllegalArgumentException("A case has no setting '" + setting + "'");
            }
        }
        return new Case(way, lanes, batch, duplicates, claims, recentKeys, rows, oldClaims, customers, ordered, load);
    }

    private static int number(String setting) {
        return Integer.parseInt(setting.substring(setting.indexOf('=') + 1));
    }

    /** The case whose full load this one has half of. */
    public Case reference() {
        Way whose = load == Load.HALF_OF_JDBC ? Way.JDBC : way;
        return new Case(
                whose,
                load == Load.HALF_OF_JDBC ? whose.lanes() : lanes,
                load == Load.HALF_OF_JDBC ? whose.batch() : batch,
                duplicates,
                claims,
                recentKeys,
                rows,
                0,
                customers,
                ordered,
                Load.FULL);
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(way.toString());
        if (lanes != way.lanes()) {
            text.append("/lanes=").append(lanes);
        }
        if (batch != way.batch()) {
            text.append("/batch=").append(batch);
        }
        if (duplicates != 0) {
            text.append("/duplicates=").append(duplicates);
        }
        if (!claims) {
            text.append("/without-claim");
        }
        if (recentKeys) {
            text.append("/recent-keys");
        }
        if (rows != 0) {
            text.append("/rows=").append(rows);
        }
        if (oldClaims != 0) {
            text.append("/old-claims=").append(oldClaims);
        }
        if (customers != Orders.CUSTOMERS) {
            text.append("/customers=").append(customers);
        }
        if (!ordered) {
            text.append("/unordered");
        }
        return switch (load) {
            case FULL -> text.toString();
            case HALF -> text.append("/half-load").toString();
            case HALF_OF_JDBC -> text.append("/half-load-of-jdbc").toString();
        };
    }
}
