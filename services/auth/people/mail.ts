import type { Transporter } from 'nodemailer';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { beginAttempt, TooManyAttempts } from './attempts.ts';
import { emailMac } from './emails.ts';

/** Mails to persons: short, in plain text. Without SMTP_URL an operator delivers the links. */

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export interface Mailer {
  /** Resolves once the server has taken the mail, or refused it; a refusal is logged. */
  send(mail: Mail): Promise<boolean>;
  close(): void;
}

const patience = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 } as const;
const attempts = 3;

/**
 * @param smtpUrl `smtp://` or `smtps://`, with a user and a password where the server asks for them
 * @param from the address that the mails come from
 */
export const openMailer = (smtpUrl: string, from: string, logger: Pick<Logger, 'warn'>): Mailer => {
  const open = async (): Promise<Transporter> => {
    const { createTransport } = await import('nodemailer');
    return createTransport({
      url: smtpUrl,
      ...patience,
      pool: true,
      maxConnections: 2,
      // A mail is never fetched from an address or read from a file that a caller names.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  };
  // With the first mail: most processes send none.
  let opened: Promise<Transporter> | null = null;
  return {
    send: async ({ to, subject, text }) => {
      opened ??= open();
      const transport = await opened;
      for (let attempt = 1; ; attempt += 1) {
        try {
          // An address object is not parsed: a comma in it makes no second recipient.
          await transport.sendMail({ from, to: { name: '', address: to }, subject, text });
          return true;
        } catch (error) {
          const { code, responseCode } = error as { readonly code?: string; readonly responseCode?: number };
          const isFinal = attempt >= attempts || (responseCode !== undefined && responseCode >= 500);
          if (!isFinal) continue;
          // NOTE: without the error itself, which quotes the recipient.
          logger.warn({ code, responseCode }, 'a mail could not be sent');
          return false;
        }
      }
    },
    close: () => void opened?.then((transport) => transport.close()),
  };
};

const signature = '\n\nPostline';

/** @param url of the link */
export const resetMail = (to: string, url: string): Mail => ({
  to,
  subject: 'Set a new password',
  text: `Somebody, most likely you, asked for a new password for your account. Set it here within an hour:\n\n${url}\n\nIf it was not you, nothing has changed and you need do nothing.${signature}`,
});

/**
 * Whether a mail may go out to people who asked for none. A workspace that makes and revokes invitations, or has them
 * accepted with addresses of others, would otherwise send as many as it likes.
 * @param email normalised
 */
export const mayMail = async (
  { pool, secrets }: { readonly pool: Pool; readonly secrets: Secrets },
  workspaceId: string,
  email: string,
): Promise<boolean> => {
  try {
    await beginAttempt(pool, { what: `mails of ${workspaceId}`, free: 100 });
    await beginAttempt(pool, {
      what: `mail of ${workspaceId} to ${emailMac(secrets, email).toString('hex')}`,
      free: 3,
    });
    return true;
  } catch (error) {
    if (error instanceof TooManyAttempts) return false;
    throw error;
  }
};

export const confirmMail = (to: string, url: string): Mail => ({
  to,
  subject: 'Confirm your e-mail address',
  text: `Somebody, most likely you, made an account with this address. Confirm within a day that the address is yours:\n\n${url}\n\nUntil then the account can do little. If it was not you, you need do nothing; or open the link and set a password, and the account is yours alone.${signature}`,
});

export const inviteMail = (to: string, workspaceName: string, url: string, expiresAt: string): Mail => ({
  to,
  subject: `You are invited to ${workspaceName.replaceAll(/[\r\n]+/g, ' ')}`,
  text: `You are invited to become a member of ${workspaceName}. Open this link before ${expiresAt.slice(0, 16).replace('T', ' ')} UTC:\n\n${url}\n\nIf you do not know them, you need do nothing.${signature}`,
});

/** What changes who can sign in as a person, in words for that person. */
const changes = {
  password_changed: [
    'Your password was changed',
    'The password of your account was changed. Every other session has ended.',
  ],
  password_reset: [
    'Your password was set anew',
    'The password of your account was set through a link. Every session has ended, and every app and agent that you had let in is disconnected. Look under Security whether you know each passkey that is left.',
  ],
  passkey_added: ['A passkey was added', 'Somebody who is signed in as you, and knows your password, added a passkey.'],
  passkey_removed: ['A passkey was removed', 'A passkey of your account was removed: it signs nobody in any more.'],
  second_factor_on: ['The second factor is on', 'From now on a sign-in with your password asks for a code as well.'],
  second_factor_off: ['The second factor is off', 'From now on your password alone signs in.'],
  recovery_codes: ['You have new recovery codes', 'New recovery codes were made. The former ones have ended.'],
  recovery_code_used: ['A recovery code was used', 'Somebody signed in as you with a recovery code, which has ended.'],
  new_browser: ['A sign-in from a new browser', 'Somebody signed in as you in a browser that you had not used before.'],
} as const;
export type SecurityChange = keyof typeof changes;

/** @param where such as `Firefox on Linux, 192.0.2.1` */
export const securityMail = (to: string, change: SecurityChange, where: string, at: number): Mail => {
  const [subject, what] = changes[change];
  const time = new Date(at).toISOString().slice(0, 16).replace('T', ' ');
  const advice =
    'If it was you, you need do nothing. If not, set a new password at once, look under Security in the console, and tell the owner of your workspace.';
  return { to, subject, text: `${what}\n\n${where}, ${time} UTC\n\n${advice}${signature}` };
};
