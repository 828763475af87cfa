/** Seconds for which what the authorization server issues is valid. */

export const accessTokenSeconds = 15 * 60;
export const refreshTokenSeconds = 30 * 86_400;
export const codeSeconds = 60;
/** For sign-in and consent. */
export const interactionSeconds = 15 * 60;
/** A person consents anew after this time, however often the app has refreshed. */
export const grantSeconds = 366 * 86_400;
