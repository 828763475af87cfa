/** Exits 0 when the port given, OPS_PORT of the process in this container, answers /readyz with 200; else says why not. */
const ready = async (port) => {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(4_000) });
  // Read in any case: an answer that is not read keeps its connection, and so this process, alive.
  const reasons = await answer.text();
  if (!answer.ok) throw new Error(reasons);
};

ready(process.argv[2]).catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
