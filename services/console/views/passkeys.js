// The only script of the console: it opens the browser's own dialog for passkeys and sends its answer with the form.
// Without it, and in browsers that lack the dialog, the form stays hidden.
for (const form of document.querySelectorAll('form[data-passkey]')) {
  const isNew = form.dataset.passkey === 'create';
  const { PublicKeyCredential: dialog } = window;
  const read = isNew ? dialog?.parseCreationOptionsFromJSON : dialog?.parseRequestOptionsFromJSON;
  if (!read) continue;
  form.hidden = false;
  const alert = form.querySelector('[data-alert]');
  form.addEventListener('submit', async (event) => {
    if (form.elements.response.value !== '') return;
    event.preventDefault();
    alert.hidden = true;
    try {
      const publicKey = read.call(dialog, JSON.parse(form.dataset.options));
      const asked = isNew ? navigator.credentials.create({ publicKey }) : navigator.credentials.get({ publicKey });
      form.elements.response.value = JSON.stringify((await asked).toJSON());
      form.submit();
    } catch {
      alert.hidden = false;
      alert.focus();
    }
  });
}
