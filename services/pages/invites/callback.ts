import type { Middleware } from 'koa';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { attemptOf, type OpenAttempt, showEnded } from './attempts.ts';
import { type KeptForConsent, redirectUriOf } from './begin.ts';
import { connectOffered } from './choice.ts';
import { nameOfWay, waysOf } from './form.ts';
import { goOrShow } from './show-invite.ts';
import { type InviteTools, refuse, refusedBy } from './tools.ts';

/**
 * Where a network sends the browser back to. The attempt is ended before the network is asked, because its answer works
 * once: a reload finds nothing to do. If we die after that, the guest begins again, and what the network gave for the
 * lost answer ends with it.
 */

/** Bytes. Networks send a code, a state and a few words. */
const longestAnswer = 8_192;

/** Of a name that comes twice the first counts, here and where the state is compared. */
const answerOf = (query: URLSearchParams): ReadonlyMap<string, string> =>
  new Map([...new Set(query.keys())].map((name) => [name, query.get(name) ?? '']));

export const callback =
  (tools: InviteTools): Middleware =>
  async (ctx) => {
    // A HEAD must not spend the answer; a router gives it to us as a GET.
    if (ctx.method !== 'GET' || ctx.querystring.length > longestAnswer) return showEnded(ctx);
    const answer = answerOf(new URLSearchParams(ctx.querystring));
    const attempt = await attemptOf<KeptForConsent>(tools, ctx, {
      ...{ kind: 'consent', token: answer.get('state'), how: 'take' },
    });
    if (attempt === null) return showEnded(ctx);
    faultPoint('connect:after-take');
    const { open, platform, kept } = attempt;
    await goOrShow(tools, ctx, open, { platform, way: kept.way }, async () =>
      connectOffered(tools, ctx, attempt, await finished(tools, attempt, answer)),
    );
  };

const finished = async (
  tools: InviteTools,
  { open, platform, kept }: OpenAttempt<KeptForConsent>,
  answer: ReadonlyMap<string, string>,
) => {
  const connector = waysOf(tools.deps, platform).find(
    (one): one is ConsentConnector => one.kind === 'consent' && nameOfWay(one) === kept.way,
  );
  if (connector === undefined) throw refuse('That network cannot be connected here any more.');
  const redirectUri = redirectUriOf(tools.deps);
  const done = await tools.ask(open.workspaceId, (signal) =>
    connector.finish({ answer, kept: kept.connector, redirectUri, workspaceId: open.workspaceId }, signal),
  );
  if (done.kind === 'refused') throw refusedBy(tools.deps, platform, done);
  if (done.accounts.length === 0) throw refuse('This login has no account that can be connected. Try another one.');
  faultPoint('connect:after-finish');
  return done;
};
