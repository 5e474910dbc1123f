package io.onceflux.benchmarks.report;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.Graphics2D;
import java.awt.Paint;
import java.awt.geom.Line2D;
import java.awt.geom.Rectangle2D;
import java.util.List;
import java.util.Map;
import org.jfree.chart.axis.CategoryAxis;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.CategoryPlot;
import org.jfree.chart.renderer.category.BarRenderer;
import org.jfree.chart.renderer.category.CategoryItemRendererState;
import org.jfree.chart.renderer.category.StandardBarPainter;
import org.jfree.chart.ui.RectangleEdge;
import org.jfree.data.category.CategoryDataset;

/** Horizontal bars with the number behind each and a line from its least to its most; what is compared with is grey. */
final class WhiskerBars extends BarRenderer {

    private static final Color ONCEFLUX = new Color(0x1f, 0x6f, 0xb5);
    private static final Color BASELINE = new Color(0xa9, 0xb2, 0xbd);
    private static final Color INK = new Color(0x22, 0x2b, 0x38);

    private final transient List<Map.Entry<String, Figure>> bars;

    WhiskerBars(List<Map.Entry<String, Figure>> bars) {
        this.bars = bars;
        setBarPainter(new StandardBarPainter());
        setShadowVisible(false);
        setMaximumBarWidth(0.12);
        setDefaultItemLabelFont(new Font("SansSerif", Font.PLAIN, 12));
    }

    @Override
    public Paint getItemPaint(int row, int column) {
        String what = bars.get(column).getKey();
        return what.startsWith("jdbc")
                        || what.startsWith("spring")
                        || what.startsWith("by-hand")
                        || what.startsWith("rabbit-bare")
                ? BASELINE
                : ONCEFLUX;
    }

    @Override
    public void drawItem(
            Graphics2D g,
            CategoryItemRendererState state,
            Rectangle2D area,
            CategoryPlot plot,
            CategoryAxis categories,
            ValueAxis values,
            CategoryDataset data,
            int row,
            int column,
            int pass) {
        super.drawItem(g, state, area, plot, categories, values, data, row, column, pass);
        Figure figure = bars.get(column).getValue();
        RectangleEdge edge = plot.getRangeAxisEdge();
        double middle = categories.getCategoryMiddle(column, data.getColumnCount(), area, plot.getDomainAxisEdge());
        double from = values.valueToJava2D(figure.min(), area, edge);
        double to = values.valueToJava2D(figure.max(), area, edge);
        g.setPaint(INK);
        g.setStroke(new BasicStroke(1.2f));
        g.draw(new Line2D.Double(from, middle, to, middle));
        g.draw(new Line2D.Double(from, middle - 4, from, middle + 4));
        g.draw(new Line2D.Double(to, middle - 4, to, middle + 4));
        g.setFont(getDefaultItemLabelFont());
        g.drawString(Format.number(figure.median()), (float) to + 8, (float) middle + 4);
    }
}
