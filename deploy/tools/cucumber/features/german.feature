# language: de
Funktionalität: Ein Laden

  Szenario: Zahlt
    Angenommen a cart
    Wenn I pay 1 €
    Dann I have paid
