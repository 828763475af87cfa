/** Exits 0 when one of the ports given answers /readyz with 200: a worker has one for it, the api answers on its own. */
const ready = async (port) => {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(4_000) });
  if (!answer.ok) throw new Error(await answer.text());
};

Promise.any(process.argv.slice(2).map(ready)).then(
  () => process.exit(0),
  ({ errors }) => {
    process.stderr.write(`${errors.map((error) => error.message).join('\n')}\n`);
    process.exit(1);
  },
);
