// Unpacks Chromium, with fonts and the libraries that a bare container lacks
// (the package brings them for one environment only), into $TMPDIR.
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x";
const { default: chromium } = await import("@sparticuz/chromium");
await chromium.executablePath();
