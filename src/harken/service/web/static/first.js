var o="harken-theme";function t(){let e=null;try{e=localStorage.getItem(o)}catch{}(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}t();
