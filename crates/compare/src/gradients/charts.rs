//! Stands in for the drawing of `msprobe_report` until it is there: same names, same arguments.

use std::io::{self, Write};

use msprobe_report::{HtmlReport, Tone, write_html};

pub(super) struct LinePlot<'a> {
    pub(super) title: &'a str,
    pub(super) x_label: &'a str,
    pub(super) y_label: &'a str,
    pub(super) points: &'a [(f64, f64)],
}

/// The smallest picture there is.
const DOT: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\x02\
    \0\x01H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82";

pub(super) fn line_plot_png(plot: &LinePlot<'_>, mut out: impl Write) -> io::Result<()> {
    let _ = (plot.title, plot.x_label, plot.y_label, plot.points);
    out.write_all(DOT)
}

pub(super) struct Curves<'a> {
    pub(super) title: String,
    pub(super) x_label: String,
    pub(super) xs: Vec<i64>,
    pub(super) threshold: Option<f64>,
    pub(super) series: &'a dyn CurveSeries,
}

pub(super) trait CurveSeries: Sync {
    fn len(&self) -> usize;
    fn name(&self, index: usize) -> &str;
    fn note(&self, index: usize) -> String;
    fn tone(&self, index: usize) -> Tone;
    fn values(&self, index: usize) -> Vec<f64>;
    fn flagged(&self, index: usize) -> Vec<usize>;
}

pub(super) fn write_html_with_curves(
    report: &HtmlReport<'_>,
    curves: &Curves<'_>,
    out: impl Write,
) -> io::Result<()> {
    let _ = (&curves.title, &curves.x_label, &curves.xs, curves.threshold);
    for index in 0..curves.series.len() {
        let series = curves.series;
        let _ = (series.name(index), series.note(index), series.tone(index), series.values(index));
        let _ = series.flagged(index);
    }
    write_html(report, out)
}
