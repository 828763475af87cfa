/**
 * Exits 0 when /readyz answers 200 on the given port, else on OPS_PORT of the process in this container; otherwise
 * prints the reasons.
 */
const ready = async (port) => {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(4_000) });
  // Read in any case: an unread answer keeps its connection, and so this process, alive.
  const reasons = await answer.text();
  if (!answer.ok) throw new Error(reasons);
};

ready(process.argv[2]).catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
