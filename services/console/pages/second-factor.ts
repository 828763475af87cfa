import {
  confirmSecondFactor,
  offerSecondFactor,
  openOffer,
  removeSecondFactor,
  replaceRecoveryCodes,
} from '#services/auth/people/security.ts';
import type { Visit, Visitor } from '../deps.ts';
import { attempt, type FormRefusal, refusalOf } from '../errors.ts';
import { textOf } from '../forms.ts';
import type { Route } from '../routes.ts';
import { tellPerson } from '../security-mails.ts';
import { goTo, showPage } from '../show.ts';
import { showSecurity } from './security.ts';

/** The second factor: codes of an authenticator app, and recovery codes for the day on which the app is lost. */

const offerPath = '/security/second-factor';

const offer = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, form, visitor } = visit;
  const refused = await refusalOf(ctx, async () => {
    await offerSecondFactor(it.deps, visitor.personId, form.get('password') ?? '');
  });
  if (refused !== null) return showSecurity(visit, { ...refused, section: 'second-factor' });
  goTo(ctx, offerPath);
};

const showOffer = async (visit: Visit<Visitor>, refused: FormRefusal | null): Promise<void> => {
  const { it, ctx, visitor } = visit;
  const open = await openOffer(it.deps, visitor.personId);
  if (open === null) return goTo(ctx, '/security');
  const { default: qrcode } = await import('qrcode');
  const picture = await qrcode.toString(open.uri, { type: 'svg', margin: 2 });
  showPage(visit, {
    ...{ view: 'second-factor', title: 'Turn on the second factor', ...refused },
    data: { picture: Buffer.from(picture).toString('base64'), secret: open.text },
  });
};

const showCodes = (visit: Visit<Visitor>, codes: readonly string[]): void =>
  showPage(visit, { view: 'recovery-codes', title: 'Your recovery codes', data: { codes } });

const confirm = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, form, visitor } = visit;
  const [codes, refused] = await attempt(ctx, () =>
    confirmSecondFactor(it.deps, visitor.personId, textOf(form, 'code', 100)),
  );
  if (refused !== null) return showOffer(visit, refused);
  tellPerson(it, ctx, visitor.personId, 'second_factor_on');
  showCodes(visit, codes);
};

const replaceCodes = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, form, visitor } = visit;
  const [codes, refused] = await attempt(ctx, () =>
    replaceRecoveryCodes(it.deps, visitor.personId, form.get('password') ?? ''),
  );
  if (refused !== null) return showSecurity(visit, { ...refused, section: 'second-factor' });
  tellPerson(it, ctx, visitor.personId, 'recovery_codes');
  showCodes(visit, codes);
};

const remove = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, form, visitor } = visit;
  const refused = await refusalOf(ctx, async () => {
    const proof = { password: form.get('password') ?? '', code: textOf(form, 'code', 100) };
    await removeSecondFactor(it.deps, visitor.personId, proof);
  });
  if (refused !== null) return showSecurity(visit, { ...refused, section: 'second-factor' });
  tellPerson(it, ctx, visitor.personId, 'second_factor_off');
  goTo(ctx, '/security?done=second-factor-off');
};

export const secondFactorRoutes: readonly Route[] = [
  { method: 'POST', path: offerPath, for: 'person', answer: offer },
  { method: 'GET', path: offerPath, for: 'person', answer: (visit) => showOffer(visit, null) },
  { method: 'POST', path: `${offerPath}/confirm`, for: 'person', answer: confirm },
  { method: 'GET', path: `${offerPath}/confirm`, for: 'person', answer: ({ ctx }) => goTo(ctx, '/security') },
  { method: 'POST', path: `${offerPath}/remove`, for: 'person', answer: remove },
  { method: 'POST', path: '/security/recovery-codes', for: 'person', answer: replaceCodes },
  { method: 'GET', path: '/security/recovery-codes', for: 'person', answer: ({ ctx }) => goTo(ctx, '/security') },
];
