//! The corpora of the fuzz targets: files and messages of others, among them those that once ended a
//! target.

use std::fs;
use std::path::Path;

use selvedge_cli::fuzz::TARGETS;

#[test]
fn every_input_of_the_corpora_is_read_or_refused() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let files =
            fs::read_dir(corpora.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut inputs = 0;
        for file in files {
            target(&fs::read(file.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{name} has no inputs");
    }
}
