package io.onceflux.postgres;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.Locale;

/**
 * How a claim table is divided into partitions, which are dropped whole when they are old. A claim's bucket is the day or the hour, in UTC, of a
 * time that belongs to the message and is the same at each delivery. Immutable.
 *
 * <p>Days for claims that are kept for weeks, hours for those that are kept for days: some hundred partitions do no harm, some thousand slow
 * planning down.
 */
public final class Buckets {

    private final Width width;
    private final Identifier column;
    private final Duration ahead;

    private Buckets(Width width, Identifier column, Duration ahead) {
        this.width = width;
        this.column = column;
        this.ahead = ahead;
    }

    /** A partition for each day. The column is of type date. */
    public static Buckets daily() {
        return new Buckets(Width.DAY, new Identifier("bucket"), Duration.ofDays(3));
    }

    /** A partition for each hour. The column is of type timestamptz. */
    public static Buckets hourly() {
        return new Buckets(Width.HOUR, new Identifier("bucket"), Duration.ofDays(3));
    }

    /** These with another name of the column. Default {@code bucket}. */
    public Buckets inColumn(String name) {
        return new Buckets(width, new Identifier(name), ahead);
    }

    /**
     * These with another time that partitions are made ahead. It is for how long claiming goes on when nobody makes any, and how far ahead
     * of the server's clock a message's time may be. Default 3 days.
     *
     * @throws IllegalArgumentException if it is shorter than a bucket, or longer than a year
     */
    public Buckets ahead(Duration time) {
        if (time.compareTo(width.length()) < 0 || time.compareTo(Duration.ofDays(366)) > 0) {
            throw new IllegalArgumentException(
                    "ahead must be from %s to 366 days, but is %s".formatted(width.length(), time));
        }
        return new Buckets(width, column, time);
    }

    Identifier column() {
        return column;
    }

    Duration ahead() {
        return ahead;
    }

    Width width() {
        return width;
    }

    /** How long a bucket is. */
    enum Width {
        DAY("date", ChronoUnit.DAYS, 10, "uuuuMMdd"),
        HOUR("timestamptz", ChronoUnit.HOURS, 20, "uuuuMMddHH");

        private final String sqlType;
        private final ChronoUnit unit;
        private final int written;
        private final DateTimeFormatter name;

        Width(String sqlType, ChronoUnit unit, int written, String name) {
            this.sqlType = sqlType;
            this.unit = unit;
            this.written = written;
            this.name = DateTimeFormatter.ofPattern(name, Locale.ROOT).withZone(ZoneOffset.UTC);
        }

        String sqlType() {
            return sqlType;
        }

        /** As the catalogue names it. */
        String fullType() {
            return this == DAY ? "date" : "timestamp with time zone";
        }

        Duration length() {
            return unit.getDuration();
        }

        /** For the end of a partition's name. */
        String name(Instant time) {
            return name.format(time);
        }

        /** The beginning of the bucket of a time. */
        Instant floor(Instant time) {
            return time.truncatedTo(unit); // From the epoch, and so in UTC.
        }

        /** As the column's type reads it, whatever time zone and date style the connection has. */
        String literal(Instant time) {
            return floor(time).toString().substring(0, written);
        }

        /** As the column's type reads it, to the second: a bound that somebody has chosen may be within an hour. */
        String bound(Instant time) {
            return this == DAY ? literal(time) : time.toString();
        }
    }

    @Override
    public String toString() {
        return width == Width.DAY ? "a partition for each day" : "a partition for each hour";
    }
}
