import type { Transporter } from 'nodemailer';
import type { PeopleDeps } from './deps.ts';

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
export const openMailer = (smtpUrl: string, from: string, logger: PeopleDeps['logger']): Mailer => {
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

export const inviteMail = (to: string, workspaceName: string, url: string, expiresAt: string): Mail => ({
  to,
  subject: `You are invited to ${workspaceName.replaceAll(/[\r\n]+/g, ' ')}`,
  text: `You are invited to become a member of ${workspaceName}. Open this link before ${expiresAt.slice(0, 16).replace('T', ' ')} UTC:\n\n${url}\n\nIf you do not know them, you need do nothing.${signature}`,
});

export const passwordSetMail = (to: string): Mail => ({
  to,
  subject: 'Your password was changed',
  text: `The password of your account was changed, and every other session has ended. If it was not you, ask for a new password at once and tell the owner of your workspace.${signature}`,
});
