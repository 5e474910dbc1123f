package io.onceflux.benchmarks.report;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.geom.Rectangle2D;
import java.text.NumberFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jfree.chart.ChartFactory;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.CategoryAxis;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.block.BlockBorder;
import org.jfree.chart.plot.CategoryPlot;
import org.jfree.chart.plot.PlotOrientation;
import org.jfree.chart.renderer.category.LineAndShapeRenderer;
import org.jfree.chart.ui.RectangleInsets;
import org.jfree.data.category.DefaultCategoryDataset;
import org.jfree.svg.SVGGraphics2D;

/** A chart of JFreeChart, in the one look that all have. */
record Chart(JFreeChart chart, int height, boolean isEmpty) {

    private static final int WIDTH = 860;
    private static final int BAR = 34;
    private static final int FRAME = 110;
    private static final Font TEXT = new Font("SansSerif", Font.PLAIN, 13);
    private static final Font TITLE = new Font("SansSerif", Font.BOLD, 17);
    private static final Color INK = new Color(0x22, 0x2b, 0x38);
    private static final Color GRID = new Color(0xdd, 0xe2, 0xe8);
    private static final List<Color> LINES = List.of(
            new Color(0x8a, 0x94, 0xa3),
            new Color(0x1f, 0x6f, 0xb5),
            new Color(0xe0, 0x7b, 0x24),
            new Color(0x2a, 0x9d, 0x6f),
            new Color(0x8e, 0x4f, 0xb0),
            new Color(0xc2, 0x39, 0x4a));

    /** A bar for each case, as long as the median, with a whisker from the least to the most. */
    static Chart bars(String title, String unit, Map<String, Figure> bars) {
        DefaultCategoryDataset data = new DefaultCategoryDataset();
        bars.forEach((what, figure) -> data.addValue(figure.median(), unit, Titles.of(what)));
        JFreeChart chart =
                ChartFactory.createBarChart(title, null, unit, data, PlotOrientation.HORIZONTAL, false, false, false);
        CategoryPlot plot = chart.getCategoryPlot();
        plot.setRenderer(new WhiskerBars(List.copyOf(bars.entrySet())));
        double longest = bars.values().stream().mapToDouble(Figure::max).max().orElse(1);
        plot.getRangeAxis().setRange(0, longest * 1.2); // With room for the number behind the longest bar.
        return new Chart(styled(chart), FRAME + BAR * bars.size(), bars.isEmpty());
    }

    /** A line for each key, through the medians. */
    static Chart lines(String title, String across, String up, Map<String, Map<String, Figure>> lines) {
        DefaultCategoryDataset data = new DefaultCategoryDataset();
        lines.forEach((line, points) -> points.forEach((at, figure) -> data.addValue(figure.median(), line, at)));
        JFreeChart chart =
                ChartFactory.createLineChart(title, across, up, data, PlotOrientation.VERTICAL, true, false, false);
        CategoryPlot plot = chart.getCategoryPlot();
        LineAndShapeRenderer renderer = new LineAndShapeRenderer(true, true);
        for (int i = 0; i < lines.size(); i++) {
            renderer.setSeriesPaint(i, LINES.get(i % LINES.size()));
            renderer.setSeriesStroke(i, new BasicStroke(2.5f));
        }
        plot.setRenderer(renderer);
        return new Chart(styled(chart), 420, lines.isEmpty());
    }

    private static JFreeChart styled(JFreeChart chart) {
        chart.setBackgroundPaint(Color.WHITE);
        chart.getTitle().setFont(TITLE);
        chart.getTitle().setPaint(INK);
        chart.setPadding(new RectangleInsets(8, 8, 8, 8));
        if (chart.getLegend() != null) {
            chart.getLegend().setItemFont(TEXT);
            chart.getLegend().setFrame(BlockBorder.NONE);
        }
        CategoryPlot plot = chart.getCategoryPlot();
        plot.setBackgroundPaint(Color.WHITE);
        plot.setOutlineVisible(false);
        plot.setRangeGridlinePaint(GRID);
        plot.setRangeGridlineStroke(new BasicStroke(1f));
        ValueAxis values = plot.getRangeAxis();
        values.setTickLabelFont(TEXT);
        values.setLabelFont(TEXT);
        values.setAxisLineVisible(false);
        if (values instanceof NumberAxis numbers) {
            numbers.setNumberFormatOverride(NumberFormat.getInstance(Locale.ROOT));
        }
        CategoryAxis categories = plot.getDomainAxis();
        categories.setTickLabelFont(TEXT);
        categories.setLabelFont(TEXT);
        categories.setMaximumCategoryLabelWidthRatio(0.45f);
        return chart;
    }

    /** Puts the chart as SVG, unless there is nothing on it. */
    void ifPresentSvg(Map<String, String> charts, String name) {
        if (!isEmpty) {
            charts.put(name, svg(name));
        }
    }

    private String svg(String name) {
        SVGGraphics2D graphics = new SVGGraphics2D(WIDTH, height);
        graphics.setDefsKeyPrefix(name + "-"); // Several share a page.
        chart.draw(graphics, new Rectangle2D.Double(0, 0, WIDTH, height));
        return graphics.getSVGElement(name);
    }
}
