import type { Context } from 'koa';
import { stateOf } from '#services/api/state.ts';
import { type SecurityChange, securityMail } from '#services/auth/people/mail.ts';
import { loadPerson } from '#services/auth/people/register.ts';
import type { Console } from './deps.ts';
import { deviceOf } from './words.ts';

/** Mails that follow an answer: its time tells nothing of whether there is such an account. */

/** Mails that are on their way at once in this process; beyond that one is not sent, and the log says so. */
const maxSending = 50;
let sending = 0;

export const canMail = ({ deps }: Console): boolean => deps.mailer !== undefined && deps.mailer !== null;

export const sendLater = (it: Console, work: () => Promise<void>): void => {
  if (sending >= maxSending) {
    it.deps.logger.warn({ sending }, 'too many mails at once: one was not sent');
    return;
  }
  sending += 1;
  work()
    .catch((err: unknown) => it.deps.logger.error({ err }, 'a mail could not be made'))
    .finally(() => {
      sending -= 1;
    });
};

/** Tells the owner of the account, who may not be the one who did it. */
export const tellPerson = (it: Console, ctx: Context, personId: string, change: SecurityChange): void => {
  const { deps } = it;
  const { mailer = null } = deps;
  if (mailer === null) return;
  const where = `${deviceOf(ctx.get('User-Agent'))}, ${stateOf(ctx).address}`;
  const at = deps.clock();
  sendLater(it, async () => {
    const email = (await loadPerson(deps, personId))?.email ?? null;
    if (email !== null) await mailer.send(securityMail(email, change, where, at));
  });
};
