/** What a person at the terminal types counts as a yes only where it is one. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { onTerminal } from '#services/admin/print.ts';
import { suite } from '#test/support/suite.ts';

const typed = async (text: string | null): Promise<boolean> => {
  const input = Object.assign(new PassThrough(), { isTTY: true });
  const ask = onTerminal(new AbortController().signal, input, new PassThrough());
  assert.ok(ask !== null);
  const answer = ask('Publish?');
  if (text === null) input.end();
  else input.write(text);
  return answer;
};

suite('a question at the terminal', (t) => {
  t('takes y and yes, and nothing else', async () => {
    for (const text of ['y\n', 'Y\n', ' yes \n']) assert.equal(await typed(text), true, text);
    for (const text of ['\n', 'n\n', 'yesterday\n', 'no y\n', 'ok\n']) assert.equal(await typed(text), false, text);
  });

  t('is a no where the input ends, and an error where the command is stopped', async () => {
    assert.equal(await typed(null), false);
    const stop = new AbortController();
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const answer = onTerminal(stop.signal, input, new PassThrough())?.('Publish?');
    stop.abort(new Error('stopped'));
    await assert.rejects(answer ?? Promise.resolve(true));
  });

  t('is asked of nobody without a terminal', () => {
    assert.equal(onTerminal(new AbortController().signal, new PassThrough(), new PassThrough()), null);
  });
});
