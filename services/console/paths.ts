/** The paths of the console, and to which of them a link may lead back. */

const own =
  /^\/(?:sign-in|sign-out|forgot-password|reset-password|confirm|join|enter|console|security|team|developers|apps|consent)(?:\/|$)/;

export const isConsolePath = (path: string): boolean => own.test(path);

export const home = '/console';

/** Pages that a sign-in may lead to: those that change nothing when they are opened. */
const landing = /^\/(?:console|security|team|developers|apps|(?:consent|join)\/[A-Za-z0-9_-]{1,100})$/;

/** Where a sign-in leads: only to pages of ours, whatever the address says. */
export const nextOf = (text: string | null): string => (text !== null && landing.test(text) ? text : home);

/** The address of the sign-in that leads to the page. */
export const signInFor = (path: string): string =>
  nextOf(path) === home ? '/sign-in' : `/sign-in?${new URLSearchParams({ next: path })}`;
