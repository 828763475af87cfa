import type { Context, Middleware } from 'koa';
import type { CodeConnector } from '#contracts/ports/connector.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { show } from '../people.ts';
import { stateOf } from '../state.ts';
import { attemptOf, type OpenAttempt, showEnded } from './attempts.ts';
import { connectOffered } from './choice.ts';
import { codePage } from './code-html.ts';
import { waysOf } from './form.ts';
import { goOrShow } from './show-invite.ts';
import { type InviteTools, refuse, refusedBy } from './tools.ts';

/**
 * The page with a code that the guest posts on the network. The account is connected before the code is given back: if
 * we die in between, the same button finds the same account again, which stores nothing new.
 */

type KeptCode = { readonly code: string; readonly steps: readonly string[]; readonly timezone: string | null };

export const codePath = (token: string): string => `/connect/code/${token}`;

const codeAt = (tools: InviteTools, ctx: Context, how: 'find' | 'take') =>
  attemptOf<KeptCode>(tools, ctx, { kind: 'code', token: ctx.params.token, how });

const showCode = (ctx: Context, { open, platform, kept }: OpenAttempt<KeptCode>, words: string | null): void => {
  const { clientName, path } = open;
  show(ctx, 200, codePage({ clientName, platform, path, code: kept.code, steps: kept.steps, words }));
};

export const getCode =
  (tools: InviteTools): Middleware =>
  async (ctx) => {
    const attempt = await codeAt(tools, ctx, 'find');
    return attempt === null ? showEnded(ctx) : showCode(ctx, attempt, null);
  };

/** The code ends by itself too: the guest, who is connected, is not told that it could not be given back. */
const forget = async (tools: InviteTools, ctx: Context, connector: CodeConnector, code: string): Promise<void> => {
  await codeAt(tools, ctx, 'take');
  await connector.forget(code).catch((err: unknown) => {
    tools.deps.logger.warn({ correlationId: stateOf(ctx).correlationId, err }, 'a code was not given back');
  });
};

export const postCode =
  (tools: InviteTools): Middleware =>
  async (ctx) => {
    const attempt = await codeAt(tools, ctx, 'find');
    if (attempt === null) return showEnded(ctx);
    const { open, platform, kept } = attempt;
    const connector = waysOf(tools.deps, platform).find((one): one is CodeConnector => one.kind === 'code');
    await goOrShow(tools, ctx, open, { platform, way: 'code' }, async () => {
      if (connector === undefined) throw refuse('That network cannot be connected here any more.');
      const found = await tools.ask(open.workspaceId, (signal) => connector.found(kept.code, signal));
      if (found.kind === 'refused') {
        showCode(ctx, attempt, refusedBy(tools.deps, platform, found).message);
        return null;
      }
      if (found.accounts.length === 0) {
        showCode(ctx, attempt, 'The code has not arrived yet. Post it as written above, and try again in a moment.');
        return null;
      }
      const next = await connectOffered(tools, ctx, attempt, found.accounts);
      faultPoint('connect:after-code');
      await forget(tools, ctx, connector, kept.code);
      return next;
    });
  };
