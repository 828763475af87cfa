import type { Context } from 'koa';
import { stateOf } from '#services/api/http/every-request.ts';
import { type SecurityChange, securityMail } from '#services/auth/people/mail.ts';
import { loadPerson } from '#services/auth/people/register.ts';
import type { Console } from './deps.ts';
import { deviceOf } from './words.ts';

/** Mails that follow an answer: its time tells nothing of whether there is such an account. */

/** Each purpose has its own bound, so that a flood of resets keeps no other mail from being sent. */
type MailPurpose = 'reset' | 'confirm' | 'notice';

/** Mails of one purpose that are on their way at once in this process; beyond that one is not sent, and the log says so. */
const maxSending = 50;
const sending: Record<MailPurpose, number> = { reset: 0, confirm: 0, notice: 0 };

export const canMail = ({ deps }: Console): boolean => deps.mailer !== undefined && deps.mailer !== null;

export const sendLater = (it: Console, purpose: MailPurpose, work: () => Promise<void>): void => {
  if (sending[purpose] >= maxSending) {
    it.deps.logger.warn({ purpose, sending: maxSending }, 'too many mails at once: one was not sent');
    return;
  }
  sending[purpose] += 1;
  work()
    .catch((err: unknown) => it.deps.logger.error({ err }, 'a mail could not be made'))
    .finally(() => {
      sending[purpose] -= 1;
    });
};

/** Tells the owner of the account, who may not be the one who did it. */
export const tellPerson = (it: Console, ctx: Context, personId: string, change: SecurityChange): void => {
  const { deps } = it;
  const { mailer = null } = deps;
  if (mailer === null) return;
  const where = `${deviceOf(ctx.get('User-Agent'))}, ${stateOf(ctx).address}`;
  const at = deps.clock();
  sendLater(it, 'notice', async () => {
    const email = (await loadPerson(deps, personId))?.email ?? null;
    if (email !== null) await mailer.send(securityMail(email, change, where, at));
  });
};
