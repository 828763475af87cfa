import { mailAddress, optional, url } from '../config-values.ts';
import { variable } from './variable.ts';

/** Mails to persons. */
export const peopleSettings = {
  smtpUrl: variable(
    'SMTP_URL',
    optional(url('smtp:', 'smtps:')),
    null as string | null,
    'server for mails to persons, like smtps://user:password@mail.example.com; none = an operator delivers the links',
  ),
  mailFrom: variable(
    'MAIL_FROM',
    mailAddress,
    'Postline <postline@localhost>',
    'the address that mails to persons come from',
  ),
} as const;
