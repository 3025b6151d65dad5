/* One analysis: the program reads the files by slices, as it asks for them, and leaves its report. */
onmessage = async ({ data: { program, files, args } }) => {
  const errors = [], lines = [];
  try {
    const module = await onnxvram({
      wasmBinary: program, thisProgram: "onnxvram", print: (line) => lines.push(line), printErr: (line) => errors.push(line),
    });
    module.FS.mkdir("/models");
    module.FS.mount(module.WORKERFS, { files }, "/models");
    module.FS.chdir("/models");
    module.callMain([...args, "--html=/report.html"]);
    let report = null;
    if (module.FS.analyzePath("/report.html").exists) {
      module.FS.chmod("/report.html", 0o600); /* Emscripten's umask leaves no rights */
      report = module.FS.readFile("/report.html");
    }
    /* What it prints where it makes no report: --help, --list-gpus. */
    postMessage({ said: report === null ? [...lines, ...errors] : errors, report }, report === null ? [] : [report.buffer]);
  } catch (error) {
    postMessage({ said: [...errors, "the analyzer stopped: " + error], report: null });
  }
};
