import { equal, ok } from 'node:assert/strict';
import { reasonWithout } from '#infra/postgres/credential-seal.ts';
import { suite } from '#test/support/suite.ts';

suite('the words of a network about a credential', (t) => {
  const token = 'r/f+é sh=token~!9';
  const secret = { refreshToken: token };
  const clean = (said: string): string => reasonWithout(`it said ${said}.`, secret);
  const removed = 'it said [removed].';

  t('are kept without the secret as it is, in a url and in a form', () => {
    equal(clean(token), removed);
    equal(clean(encodeURIComponent(token)), removed);
    equal(clean(encodeURIComponent(token).replaceAll(/%../g, (hex) => hex.toLowerCase())), removed);
    equal(clean(new URLSearchParams([['', token]]).toString().slice(1)), removed);
  });

  t('are kept without the secret in base64, wherever it stands in what was encoded', () => {
    for (const before of ['', 'a', 'ab', 'user:', 'client-1:']) {
      for (const after of ['', ':', '::']) {
        for (const form of ['base64', 'base64url'] as const) {
          const said = clean(Buffer.from(`${before}${token}${after}`).toString(form));
          ok(said.includes('[removed]'), said);
          const rest = Buffer.from(said.replace('it said ', '').replace('[removed]', ''), 'base64').toString('latin1');
          ok(!rest.includes('f+') && !rest.includes('token'), said);
        }
      }
    }
    const inUrl = clean(encodeURIComponent(Buffer.from(token).toString('base64')));
    ok(inUrl.startsWith('it said [removed]'), inUrl);
  });

  t('keep words that are no secret, and bear a secret that is no proper text', () => {
    equal(reasonWithout('so \ud800 broken', { one: '\ud800 broken' }), 'so [removed]');
    equal(reasonWithout('bearer is invalid', { type: 'bearer' }), 'bearer is invalid');
  });
});
