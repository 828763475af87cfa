/** The check that every test world applies to every answer finds each way to leave the contract. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { errors } from '#services/api/call/errors.ts';
import { codesOf } from '#services/api/contract/codes.ts';
import { operations } from '#services/api/operations.ts';
import { contractFaults, type Exchange } from '#test/support/contract.ts';
import { startWorld } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const headers = {
  'content-type': 'application/problem+json',
  'x-correlation-id': 'one',
  'ratelimit-policy': '"default";q=100;w=10',
  ratelimit: '"default";r=99;t=10',
};

type Problem = Readonly<Record<string, unknown>> & { readonly status: number };

const problem = (code: keyof typeof errors, more: Readonly<Record<string, unknown>> = {}): Problem => ({
  ...{ type: `https://api.example/v1/errors/${code}`, title: 'A title', status: errors[code].status },
  ...{ code, category: 'request', correlationId: 'one', ...more },
});
const refusing = (body: Problem, more: Partial<Exchange> = {}): readonly string[] =>
  contractFaults({ method: 'POST', path: '/posts', status: body.status, headers, body, ...more });

const entry = (more: Readonly<Record<string, unknown>>) =>
  problem('validation_failed', {
    errors: [{ path: '/content', message: 'must be a string', code: 'wrong_type', ...more }],
  });

const agency = operations.find(({ id }) => id === 'getAgency')?.example.data as Readonly<Record<string, unknown>>;
const reading = (data: unknown, more: Readonly<Record<string, string>> = {}, status = 200): readonly string[] =>
  contractFaults({
    ...{ method: 'GET', path: '/agency', status },
    headers: { ...headers, 'content-type': 'application/json', ...more },
    body: { data, meta: { correlationId: 'one' } },
  });

suite('the audit of answers', (t) => {
  t('finds nothing wrong with what the contract declares', () => {
    for (const operation of operations) {
      const path = operation.path.replaceAll(/\{\w+\}/g, 'x');
      for (const code of codesOf(operation)) {
        const { status } = errors[code];
        const later = status === 429 || status === 503 ? { ...headers, 'retry-after': '1' } : headers;
        deepEqual(
          contractFaults({ method: operation.method, path, status, headers: later, body: problem(code) }),
          [],
          `${operation.id} ${code}`,
        );
      }
    }
    deepEqual(refusing(entry({})), []);
    deepEqual(reading(agency), []);
  });

  t('finds a code that the operation does not declare, for every code of the catalogue', () => {
    for (const operation of operations) {
      const declared = new Set<string>(codesOf(operation));
      for (const code of Object.keys(errors) as (keyof typeof errors)[]) {
        if (declared.has(code)) continue;
        const body = problem(code);
        const path = operation.path.replaceAll(/\{\w+\}/g, 'x');
        const faults = contractFaults({ method: operation.method, path, status: body.status, headers, body });
        ok(
          faults.some((one) => one.includes(`does not declare the code ${code}`)),
          `${operation.id} ${code}`,
        );
      }
    }
  });

  const bad: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['a code of no catalogue', refusing({ ...problem('not_found'), code: 'made_up' }), /not in the catalogue/],
    ['another status than the code has', refusing(problem('not_found'), { status: 422 }), /has the status 404/],
    ['a problem without a title', refusing({ ...problem('not_found'), title: undefined }), /title/],
    ['a member that is not declared', refusing(problem('not_found', { hint: 'x' })), /additional/],
    ['an entry without a code', refusing(entry({ code: undefined })), /'?code'?/],
    ['an entry with a code of its own', refusing(entry({ code: 'odd' })), /odd of an entry/],
    ['a pattern in a message', refusing(entry({ message: 'must match pattern "^[a-z]$"' })), /not for people/],
    ['a phrase of the validator', refusing(entry({ message: 'must NOT have fewer than 1 items' })), /not for people/],
    ['a path that is no pointer', refusing(entry({ path: 'content' })), /no JSON Pointer/],
    [
      'a refusal in no problem',
      refusing(problem('not_found'), { headers: { ...headers, 'content-type': 'text/plain' } }),
      /text\/plain/,
    ],
    ['a header that is not declared', reading(agency, { 'x-odd': '1' }), /header x-odd/],
    ['a refusal without Retry-After', refusing(problem('rate_limited')), /retry-after is missing/],
    [
      'an answer without an id of its call',
      reading(agency, { 'x-correlation-id': undefined as never }),
      /x-correlation-id/,
    ],
    ['a status that is not declared', reading(agency, {}, 201), /does not declare this status/],
    ['an answer without a member', reading({ ...agency, timezone: undefined }), /timezone/],
    ['an answer with a further member', reading({ ...agency, secret: 'x' }), /additional/],
    [
      'a problem outside of every operation',
      contractFaults({
        method: 'GET',
        path: '/nowhere',
        status: 404,
        headers,
        body: { status: 404, code: 'not_found' },
      }),
      /title/,
    ],
  ];
  for (const [what, faults, says] of bad) {
    t(`finds ${what}`, () => match(faults.join('\n'), says));
  }

  t('a world does not close without a failure after such an answer, whoever asked', async () => {
    const world = await startWorld({
      deps: {
        first: [
          async (ctx, next) => {
            await next();
            if (ctx.path === '/v1/agency') ctx.set('X-Odd', '1');
          },
        ],
      },
    });
    equal((await fetch(`${world.origin()}/v1/agency`)).status, 401);
    await rejects(world.close(), /getAgency 401: the contract does not declare the header x-odd/);
  });
});
