import type { Context, Middleware } from 'koa';
import type { CodeConnector, OfferedAccount } from '#contracts/ports/connector.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Platform } from '#schemas/common.ts';
import { errors } from '#services/api/call/errors.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { alertOf, escapeHtml, page } from '#services/shell/page.ts';
import { show } from '../links.ts';
import { attemptOf, type OpenAttempt, showEnded } from './attempts.ts';
import { connectOffered } from './choice.ts';
import { waysOf } from './form.ts';
import { goOrShow } from './show-invite.ts';
import { type InviteTools, refuse, refusedBy } from './tools.ts';

/** One press or click marks all of the message. */
const stepOf = (step: string, message: string): string => {
  const [before = '', ...after] = step.split(message);
  const copied = after.length === 0 ? '' : `<code class="copy">${escapeHtml(message)}</code>`;
  return `<li>${escapeHtml(before)}${copied}${escapeHtml(after.join(message))}</li>`;
};

/** A message with a code that the guest posts on the network, and how. */
const codePage = (shown: {
  readonly clientName: string;
  readonly platform: Platform;
  readonly message: string;
  readonly steps: readonly string[];
  /** What came of the last try. */
  readonly words: string | null;
  /** Of the link's page. */
  readonly path: string;
}): string => {
  const { clientName, platform, message, steps, words, path } = shown;
  const { name } = rulesOf(platform);
  const html = `<h1>Connect ${escapeHtml(name)} to <bdi>${escapeHtml(clientName)}</bdi></h1>
<section class="card"><h2>Show which account is yours</h2>
<ol class="steps">
${steps.map((step) => stepOf(step, message)).join('\n')}
</ol>
${alertOf(words)}
<form method="post"><button type="submit">I have posted it</button></form>
<p class="soft">The message works for 15 minutes, and only for this browser. Post it nowhere else: the place where it is posted is connected.</p>
</section>
<p><a href="${escapeHtml(path)}">Start again</a></p>`;
  const title = `Connect ${name} to ${clientName}`;
  return page(words === null ? title : `Not connected yet: ${title}`, html);
};

export type KeptCode = {
  readonly code: string;
  readonly message: string;
  readonly steps: readonly string[];
  readonly timezone: string | null;
};

export const codePath = (token: string): string => `/connect/code/${token}`;

const codeAt = (tools: InviteTools, ctx: Context, how: 'find' | 'take') =>
  attemptOf<KeptCode>(tools, ctx, { kind: 'code', token: ctx.params.token, how });

const showCode = (
  ctx: Context,
  { open, platform, kept }: OpenAttempt<KeptCode>,
  words: string | null,
  status = 200,
): void => {
  const { clientName, path } = open;
  show(ctx, status, codePage({ clientName, platform, path, message: kept.message, steps: kept.steps, words }));
};

export const getCode =
  (tools: InviteTools): Middleware =>
  async (ctx) => {
    const attempt = await codeAt(tools, ctx, 'find');
    return attempt === null ? showEnded(ctx) : showCode(ctx, attempt, null);
  };

/** The code expires by itself too, so the page does not tell the guest, who is connected, that giving it back failed. */
const forget = async (tools: InviteTools, ctx: Context, connector: CodeConnector, code: string): Promise<void> => {
  await codeAt(tools, ctx, 'take');
  await connector.forget(code).catch((err: unknown) => {
    tools.deps.logger.warn({ correlationId: stateOf(ctx).correlationId, err }, 'a code was not given back');
  });
};

/** Accounts for which the code has spoken. @throws Refusal with words for the guest */
const spokenFor = async (
  tools: InviteTools,
  connector: CodeConnector,
  { open, platform, kept }: OpenAttempt<KeptCode>,
): Promise<readonly OfferedAccount[]> => {
  const found = await tools.ask(open.workspaceId, (signal) => connector.found(kept.code, signal));
  if (found.kind === 'refused') throw refusedBy(tools.deps, platform, found);
  return found.accounts;
};

/**
 * The page with a code that the guest posts on the network. The account is connected before the code is given back: if
 * we die in between, the same button finds the same account again, which stores nothing new.
 */
export const postCode =
  (tools: InviteTools): Middleware =>
  async (ctx) => {
    const attempt = await codeAt(tools, ctx, 'find');
    if (attempt === null) return showEnded(ctx);
    const { open, platform, kept } = attempt;
    const connector = waysOf(tools.deps, platform).find((one): one is CodeConnector => one.kind === 'code');
    await goOrShow(tools, ctx, open, { platform, way: 'code' }, async () => {
      if (connector === undefined) throw refuse('That network cannot be connected here any more.');
      const found = await spokenFor(tools, connector, attempt).catch((error: unknown) => {
        if (error instanceof Refusal && error.code === 'validation_failed') return error;
        throw error;
      });
      if (found instanceof Refusal) {
        // The guest pressed twice, and the first press has just given the code back.
        if ((await codeAt(tools, ctx, 'find')) === null) return open.path;
        showCode(ctx, attempt, found.message, errors.validation_failed.status);
        return null;
      }
      if (found.length === 0) {
        showCode(
          ctx,
          attempt,
          'The message has not arrived yet. Post it as it stands above, and press the button again.',
        );
        return null;
      }
      const next = await connectOffered(tools, ctx, attempt, { accounts: found });
      faultPoint('connect:after-code');
      await forget(tools, ctx, connector, kept.code);
      return next;
    });
  };
