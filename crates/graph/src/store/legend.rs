//! What viewers show beside a graph: colours with their ranges, and what metrics mean. Their texts are part of the format.

use msprobe_compare::Mode;
use msprobe_dump::write::JsonText;

use crate::compare::Task;
use crate::names::Generation;

const UNMATCHED: &str = "比对过程中节点未匹配上";
const BY_STATISTICS: &str = "此节点所有输入输出的统计量相对误差, 值越大代表测量值与标杆值的偏差越大, 相对误差计算方式:|(测量值-标杆值)/标杆值|";
const BY_TENSORS: &str = "此节点所有输入的最小双千分之一和所有输出的最小双千分之一的差值的绝对值, 代表双千指标的变化情况, \
    值越大代表测量值与标杆值的偏差越大, 双千分之一指标计算方式：Tensor中的元素逐个与对应的标杆数据对比，\
    相对误差小于千分之一的比例占总元素个数的比例，比例越接近1越好";
const SAME_CHECKSUMS: &str = "与标杆相比, 此节点所有输入输出的md5值相同";
const OTHER_CHECKSUMS: &str = "与标杆相比, 此节点任意输入输出的md5值不同";
const STATISTICS_BY_GRADE: &str = "此节点所有输入输出的统计量误差, 颜色越深代表调试侧与标杆侧的偏差越大";
const TENSORS_BY_GRADE: &str = "此节点所有输入输出的 tensor 误差, 颜色越深代表调试侧与标杆侧的偏差越大";

const STATISTICS_TIPS: [(&str, &str); 4] = [
    ("Max diff", "NPU与标杆API统计信息比对，最大值的差值"),
    ("Min diff", "NPU与标杆API统计信息比对，最小值的差值"),
    ("Mean diff", "NPU与标杆API统计信息比对，平均值的差值"),
    ("L2norm diff", "NPU与标杆API统计信息比对，2范数（平方根）的差值"),
];
const CHECKSUM_TIPS: [(&str, &str); 1] = [("md5", "数据MD5信息，用于比较两个数据信息是否完全一致")];
const TENSOR_TIPS: [(&str, &str); 5] = [
    (
        "One Thousandth Err Ratio",
        "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之一的比例占总元素个数的比例，比例越接近1越好",
    ),
    (
        "Five Thousandths Err Ratio",
        "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之五的比例占总元素个数的比例，比例越接近1越好",
    ),
    (
        "Cosine",
        "通过计算两个向量的余弦值来判断其相似度，数值越接近于1说明计算出的两个张量越相似，实际可接受阈值为大于0.99。\
         在计算中可能会存在nan，主要由于可能会出现其中一个向量为0",
    ),
    ("MaxAbsErr", "当最大绝对误差越接近0表示其计算的误差越小，实际可接受阈值为小于0.001"),
    (
        "MaxRelativeErr",
        "当最大相对误差越接近0表示其计算的误差越小。当dump数据中存在0或Nan时，比对结果中最大相对误差则出现inf或Nan的情况，\
         属于正常现象",
    ),
];

/// What the metrics mean, as JSON text.
pub(super) fn tool_tip(task: Task) -> String {
    let tips: &[(&str, &str)] = match task {
        Task::Values(Mode::Summary) => &STATISTICS_TIPS,
        Task::Values(Mode::Md5) => &CHECKSUM_TIPS,
        Task::Values(Mode::All) | Task::Structure => &TENSOR_TIPS,
    };
    let mut json = JsonText::on_one_line();
    json.begin_object();
    for (metric, meaning) in tips {
        json.key(metric);
        json.string(meaning);
    }
    json.end_object();
    json.finish()
}

struct Colour {
    hex: &'static str,
    /// From and to, and nothing for nodes without a partner.
    range: &'static [f64],
    description: &'static str,
    level: &'static str,
}

fn ranges(hexes: &[&'static str], bounds: &'static [[f64; 2]], description: &'static str) -> Vec<Colour> {
    let levels = ["pass", "warning", "error"];
    let colour = |(at, (hex, range)): (usize, (&&'static str, &'static [f64; 2]))| Colour {
        hex,
        range,
        description,
        level: levels.get(at).copied().unwrap_or_default(),
    };
    hexes.iter().zip(bounds).enumerate().map(colour).collect()
}

const FIVE: [&str; 5] = ["#FFFCF3", "#FFEDBE", "#FFDC7F", "#FFC62E", "#FF704D"];
const THREE: [&str; 3] = ["#FFFCF3", "#FFDC7F", "#FF704D"];
const GREY: &str = "#C7C7C7";

/// Writes the colours of a comparison.
pub(super) fn write_colours(json: &mut JsonText, task: Task, generation: Generation) {
    let mut colours = match (generation, task) {
        (_, Task::Structure) => Vec::new(),
        (Generation::Third, Task::Values(mode)) => {
            let mut grades = ranges(&THREE, &[[0.0, 0.3], [0.3, 0.6], [0.6, 1.0]], STATISTICS_BY_GRADE);
            for (at, grade) in grades.iter_mut().enumerate() {
                grade.description = match mode {
                    Mode::Summary => STATISTICS_BY_GRADE,
                    Mode::All => TENSORS_BY_GRADE,
                    Mode::Md5 if at == 0 => SAME_CHECKSUMS,
                    Mode::Md5 => OTHER_CHECKSUMS,
                };
            }
            grades
        }
        (Generation::First, Task::Values(Mode::Summary)) => {
            ranges(&FIVE, &[[0.0, 0.2], [0.2, 0.4], [0.4, 0.6], [0.6, 0.8], [0.8, 1.0]], BY_STATISTICS)
        }
        (Generation::First, Task::Values(Mode::All)) => {
            ranges(&FIVE, &[[0.0, 0.05], [0.05, 0.1], [0.1, 0.15], [0.15, 0.2], [0.2, 1.0]], BY_TENSORS)
        }
        (Generation::First, Task::Values(Mode::Md5)) => {
            let mut both = ranges(&[THREE[0]], &[[1.0, 1.0]], SAME_CHECKSUMS);
            both.extend(ranges(&[THREE[2]], &[[0.0, 0.0]], OTHER_CHECKSUMS));
            both
        }
    };
    colours.push(Colour { hex: GREY, range: &[], description: UNMATCHED, level: "unmatched node" });
    json.begin_object();
    for colour in colours {
        json.key(colour.hex);
        json.begin_object();
        json.key("value");
        json.begin_array();
        for &bound in colour.range {
            if bound == 0.0 || bound == 1.0 { json.int(bound as i128) } else { json.float(bound) }
        }
        json.end_array();
        json.key("description");
        json.string(colour.description);
        if generation == Generation::Third {
            json.key("accuracy_level");
            json.string(colour.level);
        }
        json.end_object();
    }
    json.end_object();
}
